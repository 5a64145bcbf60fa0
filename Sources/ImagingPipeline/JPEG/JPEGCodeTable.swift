// JPEGCodeTable: a JPEG's code tables for who needs the symbols alone, whatever they mean.

/// The eight tables that a file can define, made when a scan first uses them: a file can define one anew every 17 bytes.
struct JPEGCodeTables {
  private var definitions = [UnsafeRawBufferPointer?](repeating: nil, count: 8)
  private var made = [JPEGCodeTable?](repeating: nil, count: 8)

  /// Takes the tables of a segment (T.81, B.2.4.2); tells whether it makes sense.
  mutating func define(_ segment: UnsafeRawBufferPointer) -> Bool {
    var rest = segment[...]
    while let head = rest.popFirst() {
      guard head >> 4 <= 1, head & 15 < 4, rest.count >= 16 else { return false }
      let total = rest.prefix(16).reduce(0) { $0 + Int($1) }
      guard total <= 256, rest.count >= 16 + total else { return false }
      let index = Int(head >> 4) * 4 + Int(head & 15)
      definitions[index] = UnsafeRawBufferPointer(rebasing: rest.prefix(16 + total))
      made[index] = nil
      rest = rest.dropFirst(16 + total)
    }
    return true
  }

  /// A table; `nil` where there is none, or libjpeg refuses it.
  ///
  /// - Parameter index: 0–3 for means, 4–7 for details.
  mutating func table(_ index: Int) -> JPEGCodeTable? {
    if let table = made[index] { return table }
    guard let definition = definitions[index] else { return nil }
    made[index] = JPEGCodeTable(definition)
    return made[index]
  }
}

/// Codes of 1 to 16 bits (T.81, C.2), each for a symbol of a byte.
final class JPEGCodeTable {
  /// Bits a code may have to be found at once.
  static let quickBits = 10
  /// For each possible next `quickBits`: the length of the code, 8 bits further up, and its symbol; 0: a longer code.
  /// Owned: freed by `deinit`.
  let quick: UnsafeMutablePointer<UInt16>
  /// The greatest code of each length, or -1; and what is added to a code for its place among the symbols.
  private var longest = [Int](repeating: -1, count: 17)
  private var places = [Int](repeating: 0, count: 17)
  private let symbols: [UInt8]

  /// - Parameter definition: 16 counts, and so many symbols.
  init?(_ definition: UnsafeRawBufferPointer) {
    symbols = Array(definition.dropFirst(16))
    quick = .allocate(capacity: 1 << Self.quickBits)
    quick.initialize(repeating: 0, count: 1 << Self.quickBits)
    var (code, place) = (0, 0)
    for length in 1...16 {
      places[length] = place - code
      for _ in 0..<Int(definition[length - 1]) {
        guard code < 1 << length else { return nil }
        longest[length] = code
        if length <= Self.quickBits {
          let room = Self.quickBits - length
          let entry = UInt16(length) << 8 | UInt16(symbols[place])
          (quick + code << room).update(repeating: entry, count: 1 << room)
        }
        (code, place) = (code + 1, place + 1)
      }
      code <<= 1
    }
  }

  deinit { quick.deallocate() }

  /// A code that is not among the quick ones.
  ///
  /// - Parameter next: The next 16 bits.
  /// - Returns: As an entry of `quick`; 0: there is no such code.
  func entry(for next: Int) -> Int {
    for length in Self.quickBits + 1...16 {
      let code = next >> (16 - length)
      if code <= longest[length] {
        return length << 8 | Int(symbols[code + places[length]])
      }
    }
    return 0
  }
}
