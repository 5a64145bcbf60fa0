// HEIFImage: finds the coded images of which the primary image of a HEIC or AVIF consists, and
// reduces their planes.

import CVips
import Core

// reduces their planes.

import Synchronization

/// The primary image of a HEIC or AVIF: one coded image or a grid of them, as stored and then
/// turned (ISO/IEC 23008-12; AV1 Image File Format, 2). All of the container is untrusted input.
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

    /// The box of its configuration.
    var box: String { self == .hevc ? "hvcC" : "av1C" }

    /// The content of `hvcC` or `av1C`.
    func configuration(in properties: [HEIFBox]) -> ByteReader? {
      properties.first { $0.type == box }?.content
    }

    /// Whether properties are those of an image of one plane; `nil` if they do not say it.
    func isGrey(_ properties: [HEIFBox]) -> Bool? {
      // AV1 Codec ISO Media File Format Binding, 2.3.3: `monochrome` is bit 4 of the third byte.
      // ISO/IEC 14496-15, 8.3.2.1.2: chromaFormat is in the lowest bits of byte 16; 0 is grey.
      let flags = try? configuration(in: properties)?.number(at: self == .av1 ? 2 : 16, width: 1)
      return flags.map { self == .av1 ? $0 & 0x10 != 0 : $0 & 3 == 0 }
    }
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

  /// The properties of any image that need no work: sizes, depths, aspect, and light, which
  /// `HEIFContainer` reads.
  private static let known: Set<String> = [
    "ispe", "pixi", "pasp", "colr", "av1C", "hvcC", "clli", "mdcv", "cclv", "amve",
  ]
  private static let turns: Set<String> = ["irot", "imir"]
  /// The most coded images of a grid: 256 megapixels in tiles of 512 × 512.
  private static let maximumTiles = 1_024

  /// - Returns: `nil` for what libheif has to put together: cropped images, overlays, layers,
  ///   several extents; for a grey image; and for malformed boxes.
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
    let model = Self.model(in: primary.properties)
    tiles = parts.compactMap { Tile($0, codec: codec, model: model) }
    guard tiles.count == parts.count, let orientation = Self.orientation(of: primary) else {
      return nil
    }
    self.orientation = orientation
  }

  /// Returns how an item is turned (ISO/IEC 23008-12:2022, 6.5.10 and 6.5.12); `nil` for malformed
  /// boxes. The edition of 2017 has the axes of `imir` the other way round; libheif has them as
  /// here.
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

  /// Returns the colour model that the last of some properties gives (ISO/IEC 14496-12, 12.1.5).
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
  ///
  /// - Parameter model: The image's. It overrides a tile's own, as in browsers and libheif 1.23;
  ///   libheif 1.15 uses the tile's.
  fileprivate init?(_ item: HEIFItem, codec: HEIFImage.Codec, model: HEIFImage.ColourModel?) {
    guard item.type == codec.rawValue, codec.isGrey(item.properties) == false,
      item.properties.count(where: { $0.type == codec.box }) == 1,
      let content = codec.configuration(in: item.properties)
    else { return nil }
    data = item.data
    configuration = content
    self.model = model ?? HEIFImage.model(in: item.properties)
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

    /// - Returns: `nil` if the box is malformed, or if tiles of the first one's size do not cover
    ///   the image.
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

extension HEIFImage {
  /// How coded images are decoded.
  struct Decoding {
    /// Whether HEVC's edges of blocks are filtered.
    var isSmoothed: Bool
    /// The most threads.
    var threads: Int
  }

  /// Returns an area of the image in RGB, upright and reduced to a size.
  ///
  /// - Parameters:
  ///   - target: The size of the result; neither side is longer than the area's.
  ///   - area: The visible part of the upright image.
  ///   - size: The size of the upright image, as libheif gives it.
  /// - Returns: `nil` for what libheif has to decode; and for damage, which it reports.
  func reduced(
    to target: PixelSize, showing area: PixelArea, of size: PixelSize, profile: [UInt8],
    decoding: Decoding
  ) throws(ImageError) -> Image? {
    let stored = orientation.swapsSides ? size.turned : size
    let target = orientation.swapsSides ? target.turned : target
    let area = orientation.stored(area, of: size)
    let image: Image?
    if let grid {
      guard grid.size == stored, let canvas = canvas(of: grid, decoding) else { return nil }
      image = try canvas.image.reduced(
        to: target, showing: Window(area, times: (1, 1)), profile: profile,
        threads: decoding.threads)
    } else {
      image = try withPlanes(of: tiles[0], size: stored, decoding) {
        planes throws(ImageError) in
        try planes.reduced(
          to: target, showing: Window(area, times: (1, 1)), profile: profile,
          threads: decoding.threads)
      }
    }
    guard let image else { return nil }
    return try orientation.apply(to: image)
  }

  /// Decodes a coded image.
  ///
  /// - Returns: `nil` for one that libheif has to decode.
  private func withPlanes<Result: ~Copyable, Failure>(
    of tile: Tile, size: PixelSize, _ decoding: Decoding,
    _ body: (PlanarImage) throws(Failure) -> Result
  ) throws(Failure) -> Result? {
    switch codec {
    case .av1:
      guard
        let planes = AV1Planes(
          tile.data, size: size, model: tile.model, threads: decoding.threads)
      else { return nil }
      return try body(planes.image)
    case .hevc:
      guard let planes = HEVCPlanes(tile, size: size, isSmoothed: decoding.isSmoothed) else {
        return nil
      }
      return try body(planes.image)
    }
  }

  /// Decodes all tiles of a grid, also those that the result does not show: damage anywhere makes a
  /// source undecodable.
  ///
  /// - Returns: `nil` if libheif has to decode one of them.
  private func canvas(of grid: Grid, _ decoding: Decoding) -> PlanarCanvas? {
    /// Decodes a tile.
    func decode<Result: ~Copyable>(
      _ index: Int, _ body: (PlanarImage, _ x: Int, _ y: Int) -> Result?
    ) -> Result? {
      let (row, column) = index.quotientAndRemainder(dividingBy: grid.columns)
      let planes = withPlanes(of: tiles[index], size: grid.tile, decoding) {
        body($0, column * grid.tile.width, row * grid.tile.height)
      }
      return planes ?? nil
    }
    // The first tile says what samples the canvas has.
    let made = decode(0) { tile, x, y -> PlanarCanvas? in
      guard let canvas = PlanarCanvas(size: grid.size, like: tile),
        canvas.paste(tile, x: x, y: y)
      else { return nil }
      return canvas
    }
    guard let canvas = made else { return nil }
    // dav1d has threads of its own, whose stacks are larger.
    let parts = codec == .av1 ? 1 : Parallel.count(tiles.count - 1, atLeast: 1, decoding.threads)
    let hasFailed = Atomic(false)
    Parallel.run(parts) { part in
      for index in Parallel.part(part, of: parts, in: 1..<tiles.count) {
        guard !hasFailed.load(ordering: .relaxed) else { return }
        let isPasted = decode(index) { tile, x, y in canvas.paste(tile, x: x, y: y) }
        if isPasted != true { hasFailed.store(true, ordering: .relaxed) }
      }
    }
    guard !hasFailed.load(ordering: .relaxed) else { return nil }
    return canvas
  }
}

/// How the samples of a primary image are stored where libheif hands them on as they are: it
/// converts the limited range of colours alone, and leaves colours multiplied by their alpha.
struct HEIFSamples {
  private var isGreyLimited = false
  private var isAlphaLimited = false
  private var isPremultiplied = false

  init(of file: UnsafeRawBufferPointer) {
    guard let items = HEIFItems(of: file) else { return }
    if let (id, type, properties) = items.coded(items.primary),
      let codec = HEIFImage.Codec(rawValue: type), codec.isGrey(properties) == true
    {
      let own = items.properties(of: [items.primary])?[items.primary] ?? []
      isGreyLimited = codec.isLimited(own + properties) { items.items([id])?.first }
    }
    guard let alpha = items.alpha, let (id, type, properties) = items.coded(alpha) else { return }
    // Encoders of HEIC write alpha in full range, and do not say so.
    isAlphaLimited =
      HEIFImage.Codec(rawValue: type)?.isLimited(properties) {
        type == HEIFImage.Codec.av1.rawValue ? items.items([id])?.first : nil
      } ?? false
    isPremultiplied = items.isPremultiplied
  }

  /// Returns the image in full range, with colours of their own.
  func completed(_ image: consuming Image) throws(ImageError) -> Image {
    let hasAlpha = image.hasAlpha
    let colours = image.bands - (hasAlpha ? 1 : 0)
    if isGreyLimited || (isAlphaLimited && hasAlpha) {
      image = try image.stretched(
        (0..<image.bands).map { $0 < colours ? isGreyLimited : isAlphaLimited })
    }
    guard isPremultiplied, hasAlpha else { return image }
    let full = image.fullLight
    let format = image.format
    return try image.unpremultiplied(full).rounded(to: format)
  }
}

extension HEIFImage.Codec {
  /// Whether black is 16 in an image, and white 235: by the container, without that by the coded
  /// image.
  fileprivate func isLimited(_ properties: [HEIFBox], item: () -> HEIFItem?) -> Bool {
    if let model = HEIFImage.model(in: properties) { return !model.isFullRange }
    guard let item = item(), let configuration = configuration(in: properties) else { return false }
    switch self {
    case .av1:
      return item.sequenceHeader?.color_range == 0
    case .hevc:
      let tile = HEIFImage.Tile(data: item.data, configuration: configuration, model: nil)
      return HEVCPlanes.isFullRange(tile) == false
    }
  }
}

extension Image {
  /// Returns the image with the limited range of some bands made full (ITU-T H.273, 8.3,
  /// VideoFullRangeFlag).
  fileprivate consuming func stretched(_ bands: [Bool]) throws(ImageError) -> Image {
    let full = fullLight
    // At more than 8 bits, black and white are shifted like all values.
    let unit = has16Bits ? 256.0 : 1
    let factors = bands.map { $0 ? full / (219 * unit) : 1 }
    let summands = bands.map { $0 ? -16 * full / 219 : 0 }
    let format = format
    return try scaled("range", by: factors, plus: summands).rounded(to: format)
  }

  /// Returns floats as whole numbers.
  fileprivate consuming func rounded(to format: VipsBandFormat) throws(ImageError) -> Image {
    // libvips truncates the fraction, so adding 0.5 rounds.
    try scaled("round", by: [1], plus: [0.5]).cast(to: format)
  }
}
