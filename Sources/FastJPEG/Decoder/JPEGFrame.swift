// JPEGFrame: the header of a JPEG of the most common kind, and the tables of its codes.

import Core

/// The header of a Huffman-coded JPEG with all pixels in one scan and 8 bits per sample: grey or
/// YCbCr.
///
/// All other kinds, such as progressive, CMYK, RGB and damaged files, are left to libjpeg.
struct JPEGFrame {
  /// What the codes of a component stand for.
  struct Component {
    /// The component's blocks in a unit, across and down.
    let blocks: (across: Int, down: Int)
    let quantization: [UInt16]
    let dc: JPEGHuffmanTable
    let ac: JPEGHuffmanTable
  }

  let sizes: JPEGScanFrame
  /// The components: 1 or 3.
  let components: [Component]
  /// The units between two restart markers; 0 means no restarts.
  let restartInterval: Int
  /// The offset of the entropy-coded data in the file.
  let start: Int

  /// Reads the header; `nil` if the JPEG is of another kind.
  init?(_ bytes: UnsafeRawBufferPointer) {
    var markers = JPEGMarkers(bytes)
    var quantizers = JPEGQuantizers()
    var tables = JPEGCodeTables()
    var frame: JPEGScanFrame?
    var interval = 0
    while let (marker, segment) = markers.nextSegment() {
      switch marker {
      case 0xdb: guard quantizers.define(segment) else { return nil }
      case 0xc4: guard tables.define(segment) else { return nil }
      case 0xdd:
        guard segment.count == 2 else { return nil }
        interval = Int(segment[0]) << 8 | Int(segment[1])
      case 0xc0, 0xc1:
        guard frame == nil, let read = JPEGScanFrame(segment, isProgressive: false),
          read.isGreyOrYCbCr
        else { return nil }
        frame = read
      case 0xee where segment.starts(with: "Adobe".utf8):
        // The Adobe colour transform: 1 is YCbCr.
        guard segment.count >= 12, segment[11] == 1 else { return nil }
      case 0xda:
        guard let frame,
          let components = Self.components(frame, scan: segment, quantizers, tables)
        else { return nil }
        sizes = frame
        self.components = components
        restartInterval = interval
        start = markers.position
        return
      case 0xe0...0xef, 0xfe: break
      default: return nil
      }
    }
    return nil
  }

  /// Reads the single scan that contains all of a frame (T.81, B.2.3).
  private static func components(
    _ frame: JPEGScanFrame, scan: UnsafeRawBufferPointer, _ quantizers: JPEGQuantizers,
    _ tables: JPEGCodeTables
  ) -> [Component]? {
    var made = [JPEGHuffmanTable?](repeating: nil, count: 8)
    /// Builds a table once; two components usually share theirs.
    func table(_ index: Int) -> JPEGHuffmanTable? {
      if let table = made[index] { return table }
      guard let definition = tables.definition(index) else { return nil }
      made[index] = JPEGHuffmanTable(definition, isDC: index < 4)
      return made[index]
    }

    guard let header = JPEGScanHeader(scan, of: frame),
      header.members.map(\.component) == Array(frame.components.indices),
      // All coefficients, at full precision.
      scan.suffix(3).elementsEqual([0, 63, 0])
    else { return nil }
    var components: [Component] = []
    for member in header.members {
      let own = frame.components[member.component]
      guard let quantization = quantizers.factors(own.quantizer), let dc = table(member.dc),
        let ac = table(4 + member.ac)
      else { return nil }
      components.append(
        Component(blocks: frame.blocks(of: own), quantization: quantization, dc: dc, ac: ac))
    }
    // T.81, B.2.3: a unit has at most 10 blocks.
    return components.reduce(0) { $0 + $1.blocks.across * $1.blocks.down } <= 10 ? components : nil
  }
}

/// The quantization tables of a file.
struct JPEGQuantizers {
  private var tables = [[UInt16]?](repeating: nil, count: 4)

  /// Reads the tables of a segment (T.81, B.2.4.1): 64 numbers of one or two bytes each.
  ///
  /// - Returns: Whether the segment is valid.
  mutating func define(_ segment: UnsafeRawBufferPointer) -> Bool {
    var rest = segment[...]
    while let head = rest.popFirst() {
      let width = head >> 4 == 0 ? 1 : 2
      guard head & 15 < 4, rest.count >= 64 * width else { return false }
      let bytes = rest.prefix(64 * width).map { UInt16($0) }
      tables[Int(head & 15)] =
        width == 1 ? bytes : (0..<64).map { bytes[2 * $0] << 8 | bytes[2 * $0 + 1] }
      rest = rest.dropFirst(64 * width)
    }
    return true
  }

  /// Returns the factor of the mean in a table; 1 without the table.
  func ofMean(_ index: Int) -> Int { tables[index].map { Int($0[0]) } ?? 1 }

  /// Returns the factors of a table, in file order; `nil` without it, and if one has more than the
  /// 8 bits that samples of 8 bits allow, on which `JPEGRow` relies.
  func factors(_ index: Int) -> [UInt16]? {
    tables[index].flatMap { table in table.allSatisfy { $0 <= 255 } ? table : nil }
  }
}

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
  private let codes: JPEGCodes
  private let isDC: Bool

  /// Builds the table. Returns `nil` in these cases:
  /// - There are more codes than fit.
  /// - A code consists of ones only (T.81, C.2 excludes it, and libjpeg rejects it).
  /// - A number has more bits than 8-bit samples allow: 11 for DC, 10 for AC (T.81, tables F.1 and
  ///   F.2).
  ///
  /// - Parameters:
  ///   - definition: The number of codes of each length, 1–16, then the symbols in the order of the
  ///     codes.
  ///   - isDC: Whether symbols are only bit counts, without a run of zeros.
  init?(_ definition: UnsafeRawBufferPointer, isDC: Bool) {
    guard definition.dropFirst(16).allSatisfy({ isDC ? $0 <= 11 : $0 & 15 <= 10 }) else {
      return nil
    }
    var quick = [UInt32](repeating: 0, count: 1 << Self.quickBits)
    let codes = JPEGCodes(definition, hasOnes: false) { code, length, symbol in
      guard length <= Self.quickBits else { return }
      let room = Self.quickBits - length
      for rest in 0..<1 << room {
        quick[code << room | rest] = Self.pack(
          Self.entry(symbol, length: length, isDC: isDC), rest: rest, of: room)
      }
    }
    guard let codes else { return nil }
    self.codes = codes
    self.isDC = isDC
    self.quick = quick
    runs = isDC ? [] : Self.runs(of: quick)
  }

  /// Looks up a code that is longer than `quickBits`.
  ///
  /// - Parameter next: The next 16 bits.
  /// - Returns: `nil` for an invalid code.
  func entry(for next: Int) -> Entry? {
    codes.code(next, longerThan: Self.quickBits).map {
      Self.entry($0.symbol, length: $0.length, isDC: isDC)
    }
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
