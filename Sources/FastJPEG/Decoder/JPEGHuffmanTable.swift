// JPEGHuffmanTable: a Huffman table that decodes a code together with its number.

/// A Huffman table of ITU-T T.81, annex F.2.2.3: codes of 1 to 16 bits.
struct JPEGHuffmanTable {
  /// The meaning of a code and the number after it.
  struct Entry {
    /// The bits of the code, plus those of the number if it is known already.
    let bits: Int
    /// The number of coefficients to advance; `end` if the block ends.
    let advance: Int
    /// The bits of the number still to be read.
    let more: Int
    /// The number, if `more` is 0.
    let value: Int

    /// An advance past the last coefficient from any position.
    static let end = 64
  }

  /// The maximum bits of a code in the lookup table.
  static let quickBits = 11
  /// For each value of the next `quickBits` bits: a packed entry, or 0 if the code is longer.
  let quick: [UInt32]
  /// For each value of the next `quickBits` bits: the total of all complete codes in it, for
  /// skipping coefficients. Packed as total bits, total advance, and an end-of-block flag; empty
  /// for DC.
  let runs: [UInt32]
  /// For each length, the greatest code, or -1. `places` holds the offset from a code to its
  /// symbol's index.
  private let longest: [Int]
  private let places: [Int]
  private let symbols: [UInt8]
  private let isDC: Bool

  /// Builds the table. Returns `nil` in these cases:
  /// - There are more codes than fit.
  /// - A code consists of ones only (T.81, C.2 excludes it, and libjpeg rejects it).
  /// - A number has more bits than 8-bit samples allow: 11 for DC, 10 for AC (T.81, tables F.1 and
  ///   F.2).
  ///
  /// - Parameters:
  ///   - counts: The number of codes of each length, 1–16.
  ///   - symbols: The symbols, in the order of the codes.
  ///   - isDC: Whether symbols are only bit counts, without a run of zeros.
  init?(counts: [Int], symbols: [UInt8], isDC: Bool) {
    guard symbols.allSatisfy({ isDC ? $0 <= 11 : $0 & 15 <= 10 }) else { return nil }
    self.symbols = symbols
    self.isDC = isDC
    var quick = [UInt32](repeating: 0, count: 1 << Self.quickBits)
    var longest = [Int](repeating: -1, count: 17)
    var places = [Int](repeating: 0, count: 17)
    var code = 0
    var place = 0
    for length in 1...16 {
      places[length] = place - code
      for _ in 0..<counts[length - 1] {
        guard code + 1 < 1 << length else { return nil }
        longest[length] = code
        if length <= Self.quickBits {
          let room = Self.quickBits - length
          for rest in 0..<1 << room {
            quick[code << room | rest] = Self.pack(
              Self.entry(symbols[place], length: length, isDC: isDC), rest: rest, of: room)
          }
        }
        code += 1
        place += 1
      }
      code <<= 1
    }
    self.quick = quick
    self.longest = longest
    self.places = places
    runs = isDC ? [] : Self.runs(of: quick)
  }

  /// Looks up a code that is longer than `quickBits`.
  ///
  /// - Parameter next: The next 16 bits.
  /// - Returns: `nil` for an invalid code.
  func entry(for next: Int) -> Entry? {
    for length in Self.quickBits + 1...16 {
      let code = next >> (16 - length)
      if code <= longest[length] {
        return Self.entry(symbols[code + places[length]], length: length, isDC: isDC)
      }
    }
    return nil
  }

  /// Returns the number that `raw` encodes in `bits` bits (T.81, table F.1): the lower half of the
  /// range is negative.
  @inline(__always)
  static func number(_ raw: Int, bits: Int) -> Int {
    raw < 1 << (bits - 1) ? raw - (1 << bits) + 1 : raw
  }

  private static func entry(_ symbol: UInt8, length: Int, isDC: Bool) -> Entry {
    let run = Int(symbol >> 4)
    let more = Int(symbol & 15)
    if isDC { return Entry(bits: length, advance: 0, more: more, value: 0) }
    // A run of 15 without a number means 16 zeros; any other run without a number ends the block.
    let advance = more > 0 || run == 15 ? run + 1 : Entry.end
    return Entry(bits: length, advance: advance, more: more, value: 0)
  }

  /// Packs an entry, including the number after the code if `rest` contains all of it.
  private static func pack(_ entry: Entry, rest: Int, of room: Int) -> UInt32 {
    let isWhole = entry.more <= room
    let value =
      isWhole && entry.more > 0 ? number(rest >> (room - entry.more), bits: entry.more) : 0
    let bits = entry.bits + (isWhole ? entry.more : 0)
    return UInt32(bits) | UInt32(entry.advance) << 6 | UInt32(isWhole ? 0 : entry.more) << 13
      | UInt32(UInt16(truncatingIfNeeded: value)) << 17
  }

  /// Builds `runs` from `quick`.
  private static func runs(of quick: [UInt32]) -> [UInt32] {
    quick.indices.map { next in
      var bits = 0
      var advance = 0
      while true {
        let entry = unpack(quick[next << bits & (1 << quickBits - 1)])
        let length = entry.bits + entry.more
        guard length > 0, bits + length <= quickBits, advance + entry.advance < 2 * Entry.end else {
          return UInt32(bits) | UInt32(advance) << 6
        }
        bits += length
        if entry.advance == Entry.end { return UInt32(bits) | UInt32(advance) << 6 | 1 << 13 }
        advance += entry.advance
      }
    }
  }

  /// Unpacks an entry of `quick`.
  @inline(__always)
  static func unpack(_ packed: UInt32) -> Entry {
    Entry(
      bits: Int(packed & 63), advance: Int(packed >> 6 & 127), more: Int(packed >> 13 & 15),
      value: Int(Int32(bitPattern: packed) >> 17))
  }
}
