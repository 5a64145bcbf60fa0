// HEIFGrid: HEIC and AVIF files of tiles, as cameras write them and libheif's encoder does not.

import Core

/// Boxes of a file (ISO/IEC 14496-12, 4.2).
public enum HEIFBoxes {
  /// Returns a box with its header.
  public static func box(_ type: String, content: [UInt8]) -> [UInt8] {
    number(8 + content.count, width: 4) + Array(type.utf8) + content
  }

  /// Returns the big-endian bytes of a number.
  public static func number(_ value: Int, width: Int) -> [UInt8] {
    (0..<width).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }

  /// Returns the first box of a type, at any depth, with its header.
  public static func first(_ type: String, in file: [UInt8]) -> [UInt8]? {
    guard let place = file.indices.first(where: { file[$0...].starts(with: type.utf8) }), place >= 4
    else { return nil }
    let count = file[place - 4..<place].reduce(0) { $0 << 8 | Int($1) }
    guard count >= 8, place - 4 + count <= file.count else { return nil }
    return Array(file[place - 4..<place - 4 + count])
  }
}

/// A grid of coded images (ISO/IEC 23008-12, 6.6.2.3).
public struct HEIFGrid {
  /// Where the colour model (`nclx`) is.
  public enum Place: CaseIterable, Sendable {
    case image, tiles, nowhere
  }

  /// Whether tiles are AV1 instead of HEVC.
  public var isAVIF = false
  /// The bits per band: 8, 10 or 12; HEVC has 8.
  public var bits = 8
  /// The size of a tile.
  public var tile = PixelSize(width: 128, height: 96)
  /// The size in the grid's description; `nil` for the image's.
  public var size: PixelSize?
  /// Boxes that turn the image, with their only byte, in their order.
  public var turns: [(type: String, value: UInt8)] = []
  /// Where the colour model is.
  public var model = Place.nowhere
  /// Whether the grid is described in `meta` and not beside the tiles.
  public var isInMeta = true
  /// Properties of each tile beyond those it needs.
  public var tileProperties: [[UInt8]] = []

  /// Creates the description of a grid of HEVC tiles.
  public init(change: (inout HEIFGrid) -> Void = { _ in }) { change(&self) }

  /// Encodes an image of 3 bands. Tiles at the right and lower edge repeat its last pixels.
  public func file(of pixels: Pixels) throws -> [UInt8] {
    let columns = (pixels.size.width + tile.width - 1) / tile.width
    let rows = (pixels.size.height + tile.height - 1) / tile.height
    var files: [[UInt8]] = []
    for row in 0..<rows {
      for column in 0..<columns {
        let part = Pixels(width: tile.width, height: tile.height) { x, y in
          pixels.rgb(
            x: min(column * tile.width + x, pixels.size.width - 1),
            y: min(row * tile.height + y, pixels.size.height - 1))
        }
        files.append(try TestImages.heif(part, isAVIF: isAVIF, bits: bits))
      }
    }
    let data = files.compactMap { HEIFBoxes.first("mdat", in: $0).map { Array($0.dropFirst(8)) } }
    guard data.count == files.count,
      let configuration = HEIFBoxes.first(isAVIF ? "av1C" : "hvcC", in: files[0])
    else { throw TestImages.Failure(text: "no tile") }
    let size = size ?? pixels.size
    let grid =
      [0, 0, UInt8(rows - 1), UInt8(columns - 1)] + HEIFBoxes.number(size.width, width: 2)
      + HEIFBoxes.number(size.height, width: 2)
    // Tiles have the model of their coding; the image's differs.
    let model =
      model == .image
      ? HEIFBoxes.nclx(coefficients: 1)
      : HEIFBoxes.first("colr", in: files[0]) ?? HEIFBoxes.nclx(coefficients: 6)
    func extent(_ size: PixelSize) -> [UInt8] {
      HEIFBoxes.box(
        "ispe",
        content: [0, 0, 0, 0] + HEIFBoxes.number(size.width, width: 4)
          + HEIFBoxes.number(size.height, width: 4))
    }
    let image = HEIFFile.Item(
      type: "grid", data: grid,
      properties: [extent(size)] + (self.model == .image ? [model] : [])
        + turns.map { HEIFBoxes.box($0.type, content: [$0.value]) })
    let ofTile =
      [extent(tile), configuration] + (self.model == .tiles ? [model] : []) + tileProperties
    let tiles = data.map {
      HEIFFile.Item(type: isAVIF ? "av01" : "hvc1", data: $0, properties: ofTile)
    }
    return HEIFFile([image] + tiles) {
      $0.references = [("dimg", 1, Array(2...tiles.count + 1))]
      $0.isInMeta = isInMeta
      $0.essential = []
    }.bytes
  }
}

extension HEIFBoxes {
  /// Returns a colour description with these ColourPrimaries, TransferCharacteristics and
  /// MatrixCoefficients (ITU-T H.273).
  public static func nclx(
    primaries: UInt8 = 1, transfer: UInt8 = 13, coefficients: UInt8, isFullRange: Bool = true
  ) -> [UInt8] {
    box(
      "colr",
      content: Array("nclx".utf8)
        + [0, primaries, 0, transfer, 0, coefficients, isFullRange ? 0x80 : 0])
  }
}
