// PlanarCanvas: planes that tiles are copied into.

import Glibc
import Model

/// The planes of an image that is decoded in tiles.
struct PlanarCanvas: ~Copyable {
  let image: PlanarImage
  /// The three planes, one after the other. Owned; freed by `deinit`.
  private let memory: UnsafeMutableRawPointer

  /// Makes planes without content.
  ///
  /// - Parameter tile: A tile; the canvas has its depth, sampling and colour model.
  /// - Returns: `nil` without memory.
  init?(size: PixelSize, like tile: PlanarImage) {
    let (across, down) = tile.sampling
    let colours = PixelSize(
      width: (size.width + across - 1) / across, height: (size.height + down - 1) / down)
    let sampleBytes = tile.luma.sampleBytes
    guard let memory = malloc((size.pixels + 2 * colours.pixels) * sampleBytes) else { return nil }
    func plane(_ offset: Int, _ size: PixelSize) -> Plane {
      Plane(
        start: UnsafeRawPointer(memory + offset * sampleBytes), stride: size.width * sampleBytes,
        size: size, depth: tile.luma.depth)
    }
    guard
      let image = PlanarImage(
        luma: plane(0, size), blue: plane(size.pixels, colours),
        red: plane(size.pixels + colours.pixels, colours), matrix: tile.matrix)
    else {
      free(memory)
      return nil
    }
    self.memory = memory
    self.image = image
  }

  deinit { free(memory) }

  /// Copies a tile. What exceeds the canvas is left out.
  ///
  /// - Parameters:
  ///   - x: The tile's left edge, in pixels; a multiple of its sampling, as `y` is.
  ///   - y: The tile's upper edge.
  /// - Returns: Whether the tile has the canvas's depth, sampling and colour model.
  func paste(_ tile: PlanarImage, x: Int, y: Int) -> Bool {
    let (across, down) = tile.sampling
    guard tile.luma.depth == image.luma.depth, tile.matrix == image.matrix,
      image.chroma.blue.size.width == (image.luma.size.width + across - 1) / across,
      image.chroma.blue.size.height == (image.luma.size.height + down - 1) / down,
      x % across == 0, y % down == 0
    else { return false }
    Self.copy(tile.luma, to: image.luma, x: x, y: y)
    Self.copy(tile.chroma.blue, to: image.chroma.blue, x: x / across, y: y / down)
    Self.copy(tile.chroma.red, to: image.chroma.red, x: x / across, y: y / down)
    return true
  }

  private static func copy(_ tile: Plane, to plane: Plane, x: Int, y: Int) {
    let width = min(tile.size.width, plane.size.width - x)
    let height = min(tile.size.height, plane.size.height - y)
    guard width > 0, height > 0 else { return }
    let area = PixelArea(x: x, y: y, size: PixelSize(width: width, height: height))
    let target = UnsafeMutableRawPointer(mutating: plane.cut(area).start)
    for row in 0..<height {
      (target + row * plane.stride).copyMemory(
        from: tile.start + row * tile.stride, byteCount: width * tile.sampleBytes)
    }
  }
}
