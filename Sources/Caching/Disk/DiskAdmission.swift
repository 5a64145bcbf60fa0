// DiskAdmission: decides which variants are stored on disk, and how many of one source.

import Core

/// Decides whether a variant may be stored on disk.
///
/// Clients may ask for unlimited variants of one image, each once. On disk they would push out what
/// is asked for often. See docs/decisions/020-admission-to-disk.md.
final class DiskAdmission: Sendable {
  private let mode: DiskSettings.Admission
  private let ghosts = Lock(GhostList())

  init(_ mode: DiskSettings.Admission) { self.mode = mode }

  /// Returns whether a variant is stored now. Otherwise its key is remembered, and the next request
  /// for it is the second one.
  ///
  /// - Parameters:
  ///   - demand: who asks for the variant.
  ///   - hasRoom: whether the variants' share has room without an eviction.
  ///   - isStored: whether the tier may have an entry of this key, which the variant replaces.
  func admits(
    _ key: CacheKey, for demand: VariantDemand, hasRoom: @autoclosure () -> Bool,
    isStored: @autoclosure () -> Bool
  ) -> Bool {
    guard demand == .first, mode != .always else { return true }
    if mode == .auto, hasRoom() { return true }
    return isStored() || ghosts.withLock { $0.meet(key.storedHash) }
  }
}

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

/// The free-form variants on disk, by source, each source's in the order in which they were stored.
///
/// Bounded: of the 4,096 sources that stored a variant last, at most `limit` names of four bytes
/// each. With the default limit this is 2.5 MB, because arrays grow by doubling. A source that is
/// not listed any more, as after a start, begins with none.
struct VariantQuota {
  /// Maximum number of sources.
  static let maximumSources = 4_096

  private let limit: Int
  /// The lower half of `EntryDigest.low` of each variant; a group's digest is its key.
  private var sources = BoundedTable<EntryDigest, [UInt32]>(limit: maximumSources)

  /// - Parameter limit: maximum number of variants of a source, at least 1.
  init(limit: Int) { self.limit = max(limit, 1) }

  /// The number of listed sources.
  var count: Int { sources.count }

  /// Adds a variant that was stored. Returns the one that gives way: the source's variant that was
  /// stored longest ago, if there is one too many.
  mutating func note(_ digest: EntryDigest) -> EntryDigest? {
    let source = digest.ofSource
    let name = UInt32(truncatingIfNeeded: digest.low)
    var names = sources.removeValue(forKey: source) ?? []
    if let known = names.firstIndex(of: name) { names.remove(at: known) }
    names.append(name)
    let oldest = names.count > limit ? names.removeFirst() : nil
    sources[source] = names
    return oldest.map { EntryDigest(high: source.high, low: source.low | UInt64($0)) }
  }

  /// Removes a variant, which was stored again for a request that is not free-form.
  mutating func forget(_ digest: EntryDigest) {
    let name = UInt32(truncatingIfNeeded: digest.low)
    guard let place = sources[digest.ofSource]?.firstIndex(of: name) else { return }
    sources[digest.ofSource]?.remove(at: place)
  }
}

extension EntryDigest {
  /// The bits that all entries of a source share.
  fileprivate var ofSource: EntryDigest { EntryDigest(high: high, low: low & Self.sourceMask) }
}
