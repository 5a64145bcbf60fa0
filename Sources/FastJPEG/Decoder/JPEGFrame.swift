// JPEGFrame: the header of a JPEG of the most common kind, read before its pixels.

import Model

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
      made[index] = JPEGHuffmanTable(
        counts: definition.prefix(16).map { Int($0) }, symbols: Array(definition.dropFirst(16)),
        isDC: index < 4)
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

  /// Returns the factors of a table, in file order; `nil` without it, and if one has more than the 8 bits that samples of
  /// 8 bits allow, on which `JPEGRow` relies.
  func factors(_ index: Int) -> [UInt16]? {
    tables[index].flatMap { table in table.allSatisfy { $0 <= 255 } ? table : nil }
  }
}
