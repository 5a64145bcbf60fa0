// GhostList: remembers which keys were asked for once, in a table of fixed size.

/// The hashes of keys that were asked for once and are not on disk.
///
/// The table is set-associative like a processor's cache: a hash selects a set of four 32-bit
/// marks, and a new mark replaces the oldest. It takes 1 MiB, allocated with the first mark, and
/// remembers about the last 260,000 keys. Two keys are confused with a probability of one in a
/// billion; a variant is then stored at its first request. Hashes differ with each start, so
/// clients cannot choose keys of one set.
struct GhostList {
  /// Marks in a set.
  private static let ways = 4
  /// Bits of a hash that select a set.
  private static let setBits = 16
  /// The size of the whole table in bytes.
  static let bytes = (1 << setBits) * ways * MemoryLayout<UInt32>.size

  /// 0 is an empty place. The newest mark of a set comes first.
  private var marks: [UInt32] = []

  /// Remembers a hash, or forgets it if it is remembered. Returns whether it was.
  mutating func meet(_ hash: Int) -> Bool {
    if marks.isEmpty { marks = Array(repeating: 0, count: Self.ways << Self.setBits) }
    let bits = UInt64(bitPattern: Int64(hash))
    let set = Int(bits & (1 << Self.setBits - 1)) * Self.ways
    let mark = max(UInt32(bits >> 32), 1)
    let last = set + Self.ways - 1
    if let found = marks[set...last].firstIndex(of: mark) {
      for place in found..<last { marks[place] = marks[place + 1] }
      marks[last] = 0
      return true
    }
    for place in stride(from: last, to: set, by: -1) { marks[place] = marks[place - 1] }
    marks[set] = mark
    return false
  }
}
