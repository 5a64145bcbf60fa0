// JPEGCodeTable: Huffman tables of a JPEG for walking over codes without decoding coefficients.

/// The eight tables that a file can define. Each is built on first use by a scan, because a file
/// can redefine a table every 17 bytes.
struct JPEGCodeTables {
  private var definitions = [UnsafeRawBufferPointer?](repeating: nil, count: 8)
  private var made = [JPEGCodeTable?](repeating: nil, count: 8)

  /// Reads the tables of a segment (T.81, B.2.4.2); returns whether the segment is valid.
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

  /// Returns a table as the file has it: 16 counts, then the symbols; `nil` if it is undefined.
  func definition(_ index: Int) -> UnsafeRawBufferPointer? { definitions[index] }

  /// Returns a table; `nil` if it is undefined or libjpeg rejects it.
  ///
  /// - Parameter index: 0–3 for DC, 4–7 for AC.
  mutating func table(_ index: Int) -> JPEGCodeTable? {
    if let table = made[index] { return table }
    guard let definition = definitions[index] else { return nil }
    made[index] = JPEGCodeTable(definition)
    return made[index]
  }
}

/// Codes of 1 to 16 bits (T.81, C.2), each for a symbol of one byte.
struct JPEGCodes {
  /// For each length, the greatest code, or -1. `places` holds the offset from a code to its
  /// symbol's index.
  private var longest = [Int](repeating: -1, count: 17)
  private var places = [Int](repeating: 0, count: 17)
  private let symbols: [UInt8]

  /// Numbers the codes; `nil` if there are more than fit.
  ///
  /// - Parameters:
  ///   - definition: 16 counts, followed by the symbols.
  ///   - hasOnes: Whether a code may consist of ones only.
  init?(
    _ definition: UnsafeRawBufferPointer, hasOnes: Bool,
    _ body: (_ code: Int, _ length: Int, _ symbol: UInt8) -> Void
  ) {
    symbols = Array(definition.dropFirst(16))
    var code = 0
    var place = 0
    for length in 1...16 {
      places[length] = place - code
      for _ in 0..<Int(definition[length - 1]) {
        guard code + (hasOnes ? 0 : 1) < 1 << length else { return nil }
        longest[length] = code
        body(code, length, symbols[place])
        code += 1
        place += 1
      }
      code <<= 1
    }
  }

  /// Looks up a code that is longer than `least` bits; `nil` for an invalid code.
  ///
  /// - Parameter next: The next 16 bits.
  func code(_ next: Int, longerThan least: Int) -> (length: Int, symbol: UInt8)? {
    for length in least + 1...16 {
      let code = next >> (16 - length)
      if code <= longest[length] { return (length, symbols[code + places[length]]) }
    }
    return nil
  }
}

/// A table of codes, for walking over them.
final class JPEGCodeTable {
  /// The maximum bits of a code in the lookup table.
  static let quickBits = 10
  /// For each value of the next `quickBits` bits: the code length in the upper byte and the symbol
  /// in the lower; 0 for a longer code. Owned; freed by `deinit`.
  let quick: UnsafeMutablePointer<UInt16>
  private let codes: JPEGCodes

  /// Builds the table; `nil` if there are more codes than fit.
  ///
  /// - Parameter definition: 16 counts, followed by the symbols.
  init?(_ definition: UnsafeRawBufferPointer) {
    let quick = UnsafeMutablePointer<UInt16>.allocate(capacity: 1 << Self.quickBits)
    quick.initialize(repeating: 0, count: 1 << Self.quickBits)
    self.quick = quick
    let codes = JPEGCodes(definition, hasOnes: true) { code, length, symbol in
      guard length <= Self.quickBits else { return }
      let room = Self.quickBits - length
      (quick + code << room).update(
        repeating: UInt16(length) << 8 | UInt16(symbol), count: 1 << room)
    }
    guard let codes else {
      quick.deallocate()
      return nil
    }
    self.codes = codes
  }

  deinit { quick.deallocate() }

  /// Looks up a code that is longer than `quickBits`.
  ///
  /// - Parameter next: The next 16 bits.
  /// - Returns: An entry like those of `quick`; 0 for an invalid code.
  func entry(for next: Int) -> Int {
    codes.code(next, longerThan: Self.quickBits).map { $0.length << 8 | Int($0.symbol) } ?? 0
  }
}
