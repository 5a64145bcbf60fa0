// HEIFImage+Planes: decodes a HEIC or AVIF to its planes and reduces these.

import Model
import Platform
import Synchronization

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

  /// Decodes all tiles of a grid, also those that the result does not show: damage anywhere makes a source undecodable.
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
