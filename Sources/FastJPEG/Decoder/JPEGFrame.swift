// JPEGFrame: the header of a JPEG of the most common kind, read before its pixels.

import Model

/// The header of a Huffman-coded JPEG with all pixels in one scan and 8 bits per sample: grey or
/// YCbCr.
///
/// All other kinds, such as progressive, CMYK, RGB and damaged files, are left to libjpeg.
struct JPEGFrame {
  /// One colour component.
  struct Component {
    let id: UInt8
    /// The component's blocks in a unit, across and down.
    let blocks: (across: Int, down: Int)
    let quantization: [UInt16]
    let dc: JPEGHuffmanTable
    let ac: JPEGHuffmanTable
  }

  let size: PixelSize
  /// The components: 1 or 3.
  let components: [Component]
  /// The units between two restart markers; 0 means no restarts.
  let restartInterval: Int
  /// The offset of the entropy-coded data in the file.
  let start: Int

  /// The blocks of the largest component in a unit.
  var blocks: (across: Int, down: Int) {
    (
      components.map(\.blocks.across).max() ?? 1, components.map(\.blocks.down).max() ?? 1
    )
  }

  /// Reads the header; `nil` if the JPEG is of another kind.
  init?(_ bytes: UnsafeRawBufferPointer) {
    var markers = JPEGMarkers(bytes)
    var quantization = [[UInt16]?](repeating: nil, count: 4)
    var tables = [UnsafeRawBufferPointer?](repeating: nil, count: 8)
    var frame: UnsafeRawBufferPointer?
    var interval = 0
    while let (marker, segment) = markers.nextSegment() {
      switch marker {
      case 0xdb: guard Self.readQuantization(segment, into: &quantization) else { return nil }
      case 0xc4: guard Self.readTables(segment, into: &tables) else { return nil }
      case 0xdd:
        guard segment.count == 2 else { return nil }
        interval = Int(segment[0]) << 8 | Int(segment[1])
      case 0xc0, 0xc1:
        guard frame == nil else { return nil }
        frame = segment
      case 0xee where segment.starts(with: "Adobe".utf8):
        // The Adobe colour transform: 1 is YCbCr.
        guard segment.count >= 12, segment[11] == 1 else { return nil }
      case 0xda:
        guard let frame,
          let (size, components) = Self.components(
            frame, scan: segment, quantization: quantization, tables: tables)
        else { return nil }
        self.size = size
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

  /// Reads quantization tables (T.81, B.2.4.1): 64 numbers of one or two bytes each.
  private static func readQuantization(
    _ segment: UnsafeRawBufferPointer, into tables: inout [[UInt16]?]
  ) -> Bool {
    var rest = segment[...]
    while let head = rest.popFirst() {
      let width = head >> 4 == 0 ? 1 : 2
      guard head >> 4 <= 1, head & 15 < 4, rest.count >= 64 * width else { return false }
      let bytes = rest.prefix(64 * width).map { UInt16($0) }
      tables[Int(head & 15)] =
        width == 1 ? bytes : (0..<64).map { index in bytes[2 * index] << 8 | bytes[2 * index + 1] }
      rest = rest.dropFirst(64 * width)
    }
    return true
  }

  /// Reads Huffman tables (T.81, B.2.4.2): the four tables for DC, then those for AC.
  ///
  /// Tables are built only when the scan selects them, because a file can redefine a table every 17
  /// bytes.
  private static func readTables(
    _ segment: UnsafeRawBufferPointer, into tables: inout [UnsafeRawBufferPointer?]
  ) -> Bool {
    var rest = segment[...]
    while let head = rest.popFirst() {
      guard head >> 4 <= 1, head & 15 < 4, rest.count >= 16 else { return false }
      let total = rest.prefix(16).reduce(0) { $0 + Int($1) }
      guard total <= 256, rest.count >= 16 + total else { return false }
      tables[Int(head >> 4) * 4 + Int(head & 15)] = UnsafeRawBufferPointer(
        rebasing: rest.prefix(16 + total))
      rest = rest.dropFirst(16 + total)
    }
    return true
  }

  /// Reads a frame and the single scan that contains all of it (T.81, B.2.2 and B.2.3).
  private static func components(
    _ frame: UnsafeRawBufferPointer, scan: UnsafeRawBufferPointer, quantization: [[UInt16]?],
    tables: [UnsafeRawBufferPointer?]
  ) -> (PixelSize, [Component])? {
    var made = [JPEGHuffmanTable?](repeating: nil, count: 8)
    /// Builds a table once; two components usually share theirs.
    func table(_ index: Int) -> JPEGHuffmanTable? {
      if let table = made[index] { return table }
      guard let definition = tables[index] else { return nil }
      made[index] = JPEGHuffmanTable(
        counts: definition.prefix(16).map { Int($0) }, symbols: Array(definition.dropFirst(16)),
        isDC: index < 4)
      return made[index]
    }

    guard frame.count >= 6, frame[0] == 8 else { return nil }
    let size = PixelSize(
      width: Int(frame[3]) << 8 | Int(frame[4]), height: Int(frame[1]) << 8 | Int(frame[2]))
    let count = Int(frame[5])
    guard size.width > 0, size.height > 0, count == 1 || count == 3,
      frame.count == 6 + 3 * count, scan.count == 4 + 2 * count, scan[0] == count,
      // All coefficients, at full precision.
      scan[1 + 2 * count] == 0, scan[2 + 2 * count] == 63, scan[3 + 2 * count] == 0
    else { return nil }
    var components: [Component] = []
    for index in 0..<count {
      let id = frame[6 + 3 * index]
      let factors = frame[7 + 3 * index]
      let quantizer = frame[8 + 3 * index]
      let scanned = scan[1 + 2 * index]
      let codes = scan[2 + 2 * index]
      let blocks = (across: Int(factors >> 4), down: Int(factors & 15))
      guard scanned == id, (1...4).contains(blocks.across), (1...4).contains(blocks.down),
        quantizer < 4, let quantization = quantization[Int(quantizer)],
        // T.81, B.2.4.1: 8-bit samples allow factors up to 255, even in a table of two bytes each.
        quantization.allSatisfy({ $0 <= 255 }), codes >> 4 < 4, codes & 15 < 4,
        let dc = table(Int(codes >> 4)), let ac = table(4 + Int(codes & 15))
      else { return nil }
      components.append(
        // The blocks of a single component are not interleaved, regardless of its factors (T.81,
        // A.2.2).
        Component(
          id: id, blocks: count == 1 ? (1, 1) : blocks, quantization: quantization, dc: dc, ac: ac))
    }
    // T.81, B.2.3: a unit has at most 10 blocks.
    guard components.reduce(0, { $0 + $1.blocks.across * $1.blocks.down }) <= 10 else { return nil }
    // As in libjpeg, component ids "RGB" mean that the components are RGB.
    guard components.map(\.id) != Array("RGB".utf8) else { return nil }
    return (size, components)
  }
}
