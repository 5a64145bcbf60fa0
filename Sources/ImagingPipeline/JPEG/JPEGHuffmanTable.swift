// JPEGHuffmanTable: one of a JPEG's code tables, made for looking a code up together with the number behind it.

/// A table of ITU-T T.81, annex F.2.2.3: codes of 1 to 16 bits.
struct JPEGHuffmanTable {
  /// What a code and the number behind it say.
  struct Entry {
    /// Bits of the code, and of the number where that is known already.
    let bits: Int
    /// How far to go on among the 64 coefficients; `end` where no more come.
    let advance: Int
    /// Bits of the number that are still to be read.
    let more: Int
    /// The number, where `more` is 0.
    let value: Int

    /// Past the last coefficient from wherever one is.
    static let end = 64
  }

  /// Bits a code may have to be found at once.
  static let quickBits = 11
  /// For each possible next `quickBits`: an entry packed, or 0 where the code is longer.
  let quick: [UInt32]
  /// For each possible next `quickBits`: how far the codes that are whole in it reach, for who does not need their
  /// numbers. Packed as bits in all, advance in all, and whether the block ends there; empty for DC.
  let runs: [UInt32]
  /// The greatest code of each length, or -1; and what is added to a code for its place among the symbols.
  private let longest: [Int]
  private let places: [Int]
  private let symbols: [UInt8]
  private let isDC: Bool

  /// Makes the table; `nil` where there are more codes than fit, a code of ones alone (T.81, C.2: there is none, and
  /// libjpeg refuses it), or numbers of more bits than 8 bits a band come to: 11 of a mean, 10 of others (T.81, tables F.1
  /// and F.2).
  ///
  /// - Parameters:
  ///   - counts: Number of codes of each length, 1–16.
  ///   - symbols: What they mean, in order of the codes.
  ///   - isDC: Whether symbols are numbers of bits alone, without a run of zeros.
  init?(counts: [Int], symbols: [UInt8], isDC: Bool) {
    guard symbols.allSatisfy({ isDC ? $0 <= 11 : $0 & 15 <= 10 }) else { return nil }
    (self.symbols, self.isDC) = (symbols, isDC)
    var quick = [UInt32](repeating: 0, count: 1 << Self.quickBits)
    var (longest, places) = ([Int](repeating: -1, count: 17), [Int](repeating: 0, count: 17))
    var (code, place) = (0, 0)
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
        (code, place) = (code + 1, place + 1)
      }
      code <<= 1
    }
    (self.quick, self.longest, self.places) = (quick, longest, places)
    runs = isDC ? [] : Self.runs(of: quick)
  }

  /// Looks a code up that is not among the quick ones.
  ///
  /// - Parameter next: The next 16 bits.
  /// - Returns: `nil` where there is no such code.
  func entry(for next: Int) -> Entry? {
    for length in Self.quickBits + 1...16 {
      let code = next >> (16 - length)
      if code <= longest[length] {
        return Self.entry(symbols[code + places[length]], length: length, isDC: isDC)
      }
    }
    return nil
  }

  /// The number that so many bits stand for (T.81, table F.1): the lower half of their range is negative.
  @inline(__always)
  static func number(_ raw: Int, bits: Int) -> Int {
    raw < 1 << (bits - 1) ? raw - (1 << bits) + 1 : raw
  }

  private static func entry(_ symbol: UInt8, length: Int, isDC: Bool) -> Entry {
    let (run, more) = (Int(symbol >> 4), Int(symbol & 15))
    if isDC { return Entry(bits: length, advance: 0, more: more, value: 0) }
    // 15 zeros and no number are 16 zeros; anything else without one is the end.
    let advance = more > 0 || run == 15 ? run + 1 : Entry.end
    return Entry(bits: length, advance: advance, more: more, value: 0)
  }

  /// Packs an entry, with the number behind the code where `rest` holds all of it.
  private static func pack(_ entry: Entry, rest: Int, of room: Int) -> UInt32 {
    let isWhole = entry.more <= room
    let value =
      isWhole && entry.more > 0 ? number(rest >> (room - entry.more), bits: entry.more) : 0
    let bits = entry.bits + (isWhole ? entry.more : 0)
    return UInt32(bits) | UInt32(entry.advance) << 6 | UInt32(isWhole ? 0 : entry.more) << 13
      | UInt32(UInt16(truncatingIfNeeded: value)) << 17
  }

  /// Makes `runs` of `quick`.
  private static func runs(of quick: [UInt32]) -> [UInt32] {
    quick.indices.map { next in
      var (bits, advance) = (0, 0)
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

  /// Unpacks what `quick` holds.
  @inline(__always)
  static func unpack(_ packed: UInt32) -> Entry {
    Entry(
      bits: Int(packed & 63), advance: Int(packed >> 6 & 127), more: Int(packed >> 13 & 15),
      value: Int(Int32(bitPattern: packed) >> 17))
  }
}
