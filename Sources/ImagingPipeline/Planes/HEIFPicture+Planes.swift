// HEIFPicture+Planes: decodes a HEIC or AVIF to its planes and reduces these.

import Model
import Platform

extension HEIFPicture {
  /// A tile that libheif has to decode, or to refuse.
  private struct NotDecoded: Error {}

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
  ///   - profile: The ICC profile of the result; empty for none.
  ///   - decoding: How coded images are decoded.
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
      guard grid.size == stored else { return nil }
      let needed = grid.tiles(in: area)
      guard let canvas = canvas(of: needed, in: grid, decoding) else { return nil }
      var window = Window(area, times: (1, 1))
      window.x -= Double(needed.columns.lowerBound * grid.tile.width)
      window.y -= Double(needed.rows.lowerBound * grid.tile.height)
      image = try canvas.image.reduced(
        to: target, showing: window, profile: profile, threads: decoding.threads)
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
          tile.data, size: size, model: model, threads: decoding.threads)
      else { return nil }
      return try body(planes.image)
    case .hevc:
      guard
        let planes = HEVCPlanes(
          tile, size: size, model: model, isSmoothed: decoding.isSmoothed,
          threads: decoding.threads)
      else { return nil }
      return try body(planes.image)
    }
  }

  /// Decodes some tiles of a grid.
  ///
  /// - Returns: `nil` if libheif has to decode one of them.
  private func canvas(
    of needed: (columns: Range<Int>, rows: Range<Int>), in grid: Grid, _ decoding: Decoding
  ) -> PlanarCanvas? {
    let left = needed.columns.lowerBound * grid.tile.width
    let top = needed.rows.lowerBound * grid.tile.height
    let size = PixelSize(
      width: min(needed.columns.upperBound * grid.tile.width, grid.size.width) - left,
      height: min(needed.rows.upperBound * grid.tile.height, grid.size.height) - top)
    let places = needed.rows.flatMap { row in needed.columns.map { (column: $0, row: row) } }
    /// Decodes a tile, by its index in `places`.
    func decode<Result: ~Copyable>(
      _ index: Int, _ decoding: Decoding, _ body: (PlanarImage, _ x: Int, _ y: Int) -> Result?
    ) -> Result? {
      let (column, row) = places[index]
      let planes = withPlanes(
        of: tiles[row * grid.columns + column], size: grid.tile, decoding
      ) {
        body($0, column * grid.tile.width - left, row * grid.tile.height - top)
      }
      return planes ?? nil
    }
    // The first tile says what samples the canvas has.
    let made = decode(0, decoding) { tile, x, y -> PlanarCanvas? in
      guard let canvas = PlanarCanvas(size: size, like: tile), canvas.paste(tile, x: x, y: y) else {
        return nil
      }
      return canvas
    }
    guard let canvas = made else { return nil }
    // dav1d has threads of its own, whose stacks are larger.
    let parts = codec == .av1 ? 1 : Parallel.count(places.count - 1, atLeast: 1, decoding.threads)
    var each = decoding
    if parts > 1 { each.threads = 1 }
    do throws(NotDecoded) {
      try Parallel.run(parts) { part throws(NotDecoded) in
        for index in Parallel.part(part, of: parts, in: 1..<places.count) {
          let isPasted = decode(index, each) { tile, x, y in
            canvas.paste(tile, x: x, y: y)
          }
          guard isPasted == true else { throw NotDecoded() }
        }
      }
    } catch {
      return nil
    }
    return canvas
  }
}
