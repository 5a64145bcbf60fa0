// HEIFImage: finds the coded images of which the primary image of a HEIC or AVIF consists.

import Model
import Platform

/// The primary image of a HEIC or AVIF: one coded image or a grid of them, as stored and then turned (ISO/IEC 23008-12; AV1
/// Image File Format, 2). All of the container is untrusted input.
struct HEIFImage {
  /// A coded image.
  struct Tile {
    let data: UnsafeRawBufferPointer
    /// The content of `hvcC` or `av1C`.
    let configuration: ByteReader
    /// The colour model where the container gives it; it then overrides that of the coded image.
    let model: ColourModel?
  }

  /// How an image is coded; the type of its item.
  enum Codec: String {
    case hevc = "hvc1"
    case av1 = "av01"
  }

  /// MatrixCoefficients and VideoFullRangeFlag (ITU-T H.273, 8.3).
  struct ColourModel {
    let coefficients: Int
    let isFullRange: Bool
  }

  let codec: Codec
  /// From the left to the right, then from the top to the bottom.
  let tiles: [Tile]
  /// The grid; `nil` for a single coded image.
  let grid: Grid?
  /// How the image is made upright (`irot`, `imir`).
  let orientation: Orientation

  /// The properties of any image that need no work: sizes, depths, aspect, and light, which `HEIFContainer` reads.
  private static let known: Set<String> = [
    "ispe", "pixi", "pasp", "colr", "av1C", "hvcC", "clli", "mdcv", "cclv", "amve",
  ]
  private static let turns: Set<String> = ["irot", "imir"]
  /// The most coded images of a grid: 256 megapixels in tiles of 512 × 512.
  private static let maximumTiles = 1_024

  /// - Returns: `nil` for what libheif has to put together: cropped images, overlays, layers, several extents; for a grey
  ///   image; and for malformed boxes.
  init?(of file: UnsafeRawBufferPointer) {
    guard let items = HEIFItems(of: file), let primary = items.items([items.primary])?.first,
      primary.properties.allSatisfy({
        Self.known.contains($0.type) || Self.turns.contains($0.type)
      })
    else { return nil }
    var parts = [primary]
    var grid: Grid?
    if primary.type == "grid" {
      let ids = items.parts(of: items.primary)
      guard ids.count <= Self.maximumTiles, let found = items.items(ids), let first = found.first,
        found.allSatisfy({ $0.properties.allSatisfy { Self.known.contains($0.type) } }),
        let whole = Grid(primary.data, of: ids.count, like: first)
      else { return nil }
      parts = found
      grid = whole
    }
    self.grid = grid
    guard let first = parts.first, let codec = Codec(rawValue: first.type) else { return nil }
    self.codec = codec
    tiles = parts.compactMap { Tile($0, codec: codec) }
    guard tiles.count == parts.count, let orientation = Self.orientation(of: primary) else {
      return nil
    }
    self.orientation = orientation
  }

  /// Returns how an item is turned (ISO/IEC 23008-12:2022, 6.5.10 and 6.5.12); `nil` for malformed boxes. The edition of 2017
  /// has the axes of `imir` the other way round; libheif has them as here.
  private static func orientation(of item: HEIFItem) -> Orientation? {
    var orientation = Orientation.up
    for property in item.properties where turns.contains(property.type) {
      var content = property.content
      guard let value = try? content.byte() else { return nil }
      if property.type == "irot" {
        // Quarter turns against the clock; `Rotation` has them clockwise.
        let degrees = (4 - Int(value & 3)) % 4 * 90
        guard let rotation = Rotation(rawValue: degrees) else { return nil }
        orientation = orientation.turned(by: rotation, flip: .none)
      } else {
        orientation = orientation.turned(
          by: .none, flip: value & 1 == 0 ? .vertical : .horizontal)
      }
    }
    return orientation
  }

  /// Returns the colour model that the last of an item's boxes gives (ISO/IEC 14496-12, 12.1.5). Tiles have their own, and
  /// that of a grid counts for none of them, as in libheif.
  fileprivate static func model(of item: HEIFItem) -> ColourModel? {
    model(in: item.properties)
  }

  /// Returns the colour model that the last of some properties gives.
  static func model(in properties: [HEIFBox]) -> ColourModel? {
    for property in properties.reversed() where property.type == "colr" {
      var content = property.content
      if (try? content.name()) == "nclx", content.skip(4),
        let coefficients = try? content.number(2), let range = try? content.byte()
      {
        return ColourModel(coefficients: coefficients, isFullRange: range & 0x80 != 0)
      }
    }
    return nil
  }
}

extension HEIFImage.Tile {
  /// - Returns: `nil` for another codec, and for a grey image.
  fileprivate init?(_ item: HEIFItem, codec: HEIFImage.Codec) {
    let type = codec == .hevc ? "hvcC" : "av1C"
    let boxes = item.properties.filter { $0.type == type }
    guard item.type == codec.rawValue, boxes.count == 1, let box = boxes.first else { return nil }
    switch codec {
    case .av1:
      // AV1 Codec ISO Media File Format Binding, 2.3.3: `monochrome` is bit 4 of the third byte.
      guard let flags = try? box.content.number(at: 2, width: 1), flags & 0x10 == 0 else {
        return nil
      }
    case .hevc:
      // ISO/IEC 14496-15, 8.3.2.1.2: chromaFormat is in the lowest bits of byte 16; 0 is grey.
      guard let format = try? box.content.number(at: 16, width: 1), format & 3 != 0 else {
        return nil
      }
    }
    data = item.data
    configuration = box.content
    model = HEIFImage.model(of: item)
  }
}

extension HEIFImage {
  /// How tiles of one size make up an image (ISO/IEC 23008-12, 6.6.2.3).
  struct Grid {
    let columns: Int
    let rows: Int
    /// The size of the image. What exceeds it of the last tiles is hidden.
    let size: PixelSize
    /// The size of a tile.
    let tile: PixelSize

    /// The most pixels of all tiles beyond four times those of the image.
    private static let maximumExcess = 1 << 20

    /// - Returns: `nil` if the box is malformed, or if tiles of the first one's size do not cover the image.
    fileprivate init?(_ item: UnsafeRawBufferPointer, of count: Int, like first: HEIFItem) {
      let data = ByteReader(item)
      guard let rows = try? data.number(at: 2, width: 1),
        let columns = try? data.number(at: 3, width: 1), let size = Self.size(in: item),
        let tile = first.statedSize, (1...0xffff).contains(tile.width),
        (1...0xffff).contains(tile.height)
      else { return nil }
      self.columns = columns + 1
      self.rows = rows + 1
      self.size = size
      self.tile = tile
      guard count == self.columns * self.rows,
        size.width.isCovered(by: self.columns, of: tile.width),
        size.height.isCovered(by: self.rows, of: tile.height),
        tile.pixels * count <= 4 * size.pixels + Self.maximumExcess
      else { return nil }
    }

    /// Returns the size of a grid's image; `nil` if its description is malformed.
    static func size(in item: UnsafeRawBufferPointer) -> PixelSize? {
      var data = ByteReader(item)
      guard (try? data.byte()) == 0, let flags = try? data.byte(), data.skip(2),
        let width = try? data.number(flags & 1 == 0 ? 2 : 4),
        let height = try? data.number(flags & 1 == 0 ? 2 : 4), width > 0, height > 0
      else { return nil }
      return PixelSize(width: width, height: height)
    }
  }
}

extension Int {
  /// Whether `count` parts cover this length, and `count - 1` parts do not.
  fileprivate func isCovered(by count: Int, of part: Int) -> Bool {
    (count - 1) * part < self && self <= count * part
  }
}
