// JPEG2000: checks the boxes and the codestream of a JPEG 2000, and which of its samples are
// decoded right.

import Core

/// The boxes before the codestream (ISO/IEC 15444-1, annex I.5).
struct JPEG2000Boxes {
  /// The codestream.
  let codestream: UnsafeRawBufferPointer
  /// The colours of the first specification that OpenJPEG reads.
  private(set) var colours: CodestreamKind.Colours?
  /// The channels, in their order: index, type and what they belong to.
  private var channels: [[Int]] = []

  /// Reads the boxes. Their lengths are checked elsewhere: damage that is tolerated hides no kind.
  ///
  /// - Throws: `ContainerFault.unsupported`; `.excess` or `.broken` without a codestream.
  init(of source: UnsafeRawBufferPointer) throws(ContainerFault) {
    var skipped: Int?
    var codestream: UnsafeRawBufferPointer?
    var channels: [[Int]] = []
    var colours: CodestreamKind.Colours?
    var boxes = ByteReader(source)
    while codestream == nil, let box = try BoxLengths.next(in: &boxes, depth: 0, mayBeCut: true) {
      if box.type == "jp2c" { codestream = box.content.bytes }
      var inner = box.content
      // OpenJPEG also reads a header's boxes that lie outside of it.
      let isHeader = box.type == "jp2h"
      var next: (type: String, content: ByteReader)? = box
      if isHeader { next = try BoxLengths.next(in: &inner, depth: 1, mayBeCut: true) }
      while let part = next {
        switch part.type {
        case "pclr", "cmap": throw .unsupported("a palette; decoded are grey and colours")
        case "cdef": channels += Self.channels(part.content)
        case "colr" where colours == nil: colours = try Self.colours(part.content, &skipped)
        default: break
        }
        next = isHeader ? try BoxLengths.next(in: &inner, depth: 1, mayBeCut: true) : nil
      }
    }
    guard let codestream else {
      try BoxLengths.check(source)
      throw .broken("a JPEG 2000 without a codestream")
    }
    if let skipped, colours == nil {
      throw .unsupported("colours of method \(skipped); 1 and 2 are decoded")
    }
    self.codestream = codestream
    self.colours = colours
    self.channels = channels
  }

  /// Returns the colours of a specification (I.5.3.3); `nil` for a method that OpenJPEG skips.
  private static func colours(
    _ content: ByteReader, _ skipped: inout Int?
  ) throws(ContainerFault) -> CodestreamKind.Colours? {
    var content = content
    guard let method = try? content.number(1), content.skip(2) else { return nil }
    switch method {
    case 1:
      guard let number = try? content.number(4) else { return nil }
      switch number {
      case 16: return .rgb
      case 17: return .grey
      case 18: return .ycc
      default:
        let names = [0: "bilevel", 12: "CMYK", 14: "CIELab", 15: "bilevel", 20: "e-sRGB"]
        throw .unsupported(
          "\(names[number] ?? "colours of number \(number)"); decoded are sRGB (16), grey (17) and YCC (18)"
        )
      }
    case 2:
      // The colour space of an ICC profile (ICC.1, 7.2).
      guard content.skip(16), let space = try? content.name() else { return nil }
      switch space {
      case "RGB ": return .rgb
      case "GRAY": return .grey
      default: throw .unsupported("a profile for \(space); decoded are RGB and GRAY")
      }
    default:
      skipped = method
      return nil
    }
  }

  /// Returns the channels of a definition (I.5.3.6).
  private static func channels(_ content: ByteReader) -> [[Int]] {
    var content = content
    guard let count = try? content.number(2) else { return [] }
    var channels: [[Int]] = []
    for _ in 0..<min(count, content.left / 6) {
      channels.append((0..<3).map { _ in (try? content.number(2)) ?? 0 })
    }
    return channels
  }

  /// Checks that the codestream's components are what libvips takes them for: colours in their
  /// order, then alpha.
  ///
  /// - Throws: `ContainerFault.unsupported`.
  func check(_ kind: CodestreamKind) throws(ContainerFault) {
    try kind.check(colours ?? .unstated)
    let count = kind.components.count
    for channel in channels {
      let isAlpha = count.isMultiple(of: 2) && channel[0] == count - 1
      // 0 is colour, 1 alpha, 2 alpha that colours are multiplied by.
      guard isAlpha ? channel[1] == 1 && channel[2] == 0 : channel[1] == 0,
        isAlpha || channel[2] == channel[0] + 1
      else {
        throw .unsupported(
          "channel \(channel[0]) of type \(channel[1]) for \(channel[2]); "
            + "decoded are colours in their order, and plain alpha for all at the end")
      }
    }
  }
}

/// The facts of the segment SIZ (ISO/IEC 15444-1, A.5.1).
struct CodestreamKind {
  /// A component: the bits of a sample, and its steps on the grid.
  struct Component: Equatable {
    let bits: Int
    let isSigned: Bool
    let across: Int
    let down: Int
  }

  /// What boxes, or a TIFF, say of the colours.
  enum Colours {
    case grey, rgb, ycc
    /// A codestream alone: grey, RGB, or YCC if colours have fewer samples.
    case unstated
  }

  let isHighThroughput: Bool
  /// The right and the lower end of the image on its grid.
  let width: Int
  let height: Int
  /// The offset of the image.
  let left: Int
  let top: Int
  let tileWidth: Int
  let tileHeight: Int
  /// The offset of the first tile.
  let tileLeft: Int
  let tileTop: Int
  let components: [Component]

  private var isOfOneTile: Bool { width <= tileWidth && height <= tileHeight }

  /// Reads the first segment of a codestream; `nil` if it is not SIZ, or ends early. OpenJPEG
  /// accepts no other.
  init?(of source: UnsafeRawBufferPointer) {
    var bytes = ByteReader(source)
    guard (try? bytes.number(4)) == 0xff4f_ff51, let length = try? bytes.number(2), length >= 2,
      let segment = try? bytes.reader(of: length - 2)
    else { return nil }
    self.init(segment)
  }

  /// Reads a segment SIZ, starting after its length.
  init?(_ segment: ByteReader) {
    var segment = segment
    do throws(EndOfBytes) {
      // Bit 14: part 15 (ISO/IEC 15444-15, A.2).
      isHighThroughput = try segment.number(2) & 0x4000 != 0
      (width, height) = (try segment.number(4), try segment.number(4))
      (left, top) = (try segment.number(4), try segment.number(4))
      (tileWidth, tileHeight) = (try segment.number(4), try segment.number(4))
      (tileLeft, tileTop) = (try segment.number(4), try segment.number(4))
      var components: [Component] = []
      for _ in 0..<(try segment.number(2)) {
        let depth = try segment.number(1)
        components.append(
          Component(
            bits: depth & 127 + 1, isSigned: depth > 127, across: try segment.number(1),
            down: try segment.number(1)))
      }
      self.components = components
    } catch { return nil }
    guard tileWidth > 0, tileHeight > 0 else { return nil }
  }

  /// Checks that libvips decodes all samples, and as what they are.
  ///
  /// It takes images and tiles for ones at 0,0 (8.14 in part, 8.16 all); it forgets signs, scales
  /// samples below 8 bits to less than white, takes fewer samples of colours for YCC, and takes YCC
  /// with all samples for RGB.
  ///
  /// - Throws: `ContainerFault.unsupported`.
  func check(_ colours: Colours) throws(ContainerFault) {
    guard !isHighThroughput else { throw Self.highThroughput }
    guard left == 0, top == 0 else {
      throw .unsupported("an image at \(left),\(top); decoded are images at 0,0")
    }
    guard let first = components.first, components.count <= 4 else {
      throw .unsupported("\(components.count) components; 1 to 4 are decoded")
    }
    let isGrey = components.count < 3
    guard colours == .unstated || isGrey == (colours == .grey) else {
      throw .unsupported("\(components.count) components for colours of another number")
    }
    guard components.allSatisfy({ !$0.isSigned && $0.bits == first.bits }),
      8...16 ~= first.bits
    else {
      let kinds = components.map { "\($0.bits)\($0.isSigned ? " signed" : "")" }
      throw .unsupported(
        "components of \(kinds.joined(separator: ", ")) bits; decoded are unsigned ones "
          + "of the same 8 to 16 bits")
    }
    try checkSampling(colours)
  }

  private func checkSampling(_ colours: Colours) throws(ContainerFault) {
    let steps = components.map { [$0.across, $0.down] }
    let step = components.count == 3 ? components[1].across : 1
    let isReduced = step > 1 && steps == [[1, 1], [step, step], [step, step]]
    guard isReduced || steps.allSatisfy({ $0 == [1, 1] }) else {
      throw .unsupported(
        "components of \(steps) steps; decoded are equal ones, and one step for the colours of YCC")
    }
    guard isReduced ? colours == .ycc || colours == .unstated : colours != .ycc else {
      throw .unsupported(
        isReduced
          ? "RGB with fewer samples of two components; decoded is YCC"
          : "YCC with all samples; decoded is YCC with fewer samples of its colours")
    }
    // A tile's colours would begin within a sample.
    guard !isReduced || isOfOneTile || tileWidth % step == 0 && tileHeight % step == 0
    else {
      throw .unsupported("tiles of \(tileWidth)x\(tileHeight) with colours of each \(step)th pixel")
    }
  }

  static let highThroughput = ContainerFault.unsupported(
    "high-throughput JPEG 2000 (part 15); decoded is part 1")
}

/// Checks the marker segments of a codestream (ISO/IEC 15444-1, annex A).
enum CodestreamLengths {
  /// The bytes that OpenJPEG allocates up front for each tile, and for each component in it
  /// (opj_tcp_t and opj_tccp_t of version 2.5, rounded up).
  private static let bytesOfTile = 6_144
  private static let bytesOfComponent = 1_280
  /// The maximum bytes for all tiles: 16 times the need of 150 megapixels in tiles of 1,024².
  private static let maximumTileBytes = 64 << 20

  /// Checks the main header and each tile-part.
  static func check(_ source: UnsafeRawBufferPointer) throws(ContainerFault) {
    var bytes = ByteReader(source, at: 2)
    var parts: [Int: Int] = [:]
    while let marker = try? bytes.number(2) {
      switch marker {
      case 0xffd9: return
      case 0xff90: try skipTilePart(&bytes, &parts)
      // Capabilities, among which is high throughput (ISO/IEC 15444-15, A.3).
      case 0xff50: throw CodestreamKind.highThroughput
      // Extensions (ISO/IEC 15444-2, A.3), of which OpenJPEG skips most.
      case 0xff70...0xff79:
        throw .unsupported("JPEG 2000 with extensions (part 2); decoded is part 1")
      default:
        // OpenJPEG decides about bytes that are not a marker.
        guard marker >= 0xff00, let length = try? bytes.number(2), length >= 2 else { return }
        guard let segment = try? bytes.reader(of: length - 2) else {
          throw .excess("a segment", length, bytes.left + 2)
        }
        if marker == 0xff51 { try checkTiles(segment) }
      }
    }
  }

  /// Skips a tile-part, starting after its marker; a length of 0 means up to the end (A.4.2).
  ///
  /// - Parameter parts: The parts of each tile so far. OpenJPEG reads only parts in their order.
  private static func skipTilePart(
    _ bytes: inout ByteReader, _ parts: inout [Int: Int]
  ) throws(ContainerFault) {
    guard bytes.skip(2), let tile = try? bytes.number(2), let length = try? bytes.number(4),
      let part = try? bytes.number(at: bytes.position, width: 1)
    else { return }
    guard part <= parts[tile, default: 0] else {
      throw .unsupported("part \(part) of tile \(tile) before the one ahead of it")
    }
    parts[tile] = max(part + 1, parts[tile, default: 0])
    guard length > 0 else {
      bytes.skip(bytes.left)
      return
    }
    // The length counts from the marker. Marker, segment length, tile index and this length take 10
    // bytes.
    guard length >= 12, bytes.skip(length - 10) else {
      throw .excess("part of a tile", length, bytes.left + 10)
    }
  }

  /// Checks the number of tiles from the sizes of image and tiles (A.5.1).
  private static func checkTiles(_ segment: ByteReader) throws(ContainerFault) {
    guard let kind = CodestreamKind(segment) else { return }
    func count(of side: Int, from start: Int, tile: Int) -> Int {
      max((side - start + tile - 1) / tile, 0)
    }
    let across = count(of: kind.width, from: kind.tileLeft, tile: kind.tileWidth)
    let down = count(of: kind.height, from: kind.tileTop, tile: kind.tileHeight)
    let (tiles, isTooMany) = across.multipliedReportingOverflow(by: down)
    let bytes = bytesOfTile + kind.components.count * bytesOfComponent
    guard !isTooMany, tiles <= maximumTileBytes / bytes else {
      // Sides have at most 32 bits.
      let pixels = max(kind.width - kind.left, 0)
        .multipliedReportingOverflow(by: max(kind.height - kind.top, 0))
      throw .tooManyTiles(
        reason: "\(across)x\(down) tiles; at most \(maximumTileBytes / bytes) are decoded",
        pixels: pixels.overflow ? .max : pixels.partialValue)
    }
  }
}
