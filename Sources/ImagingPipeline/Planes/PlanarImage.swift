// PlanarImage: the planes of a decoded image, and their reduction to RGB.

import Core
import Glibc

/// Rows of samples in memory that a decoder owns.
struct Plane {
  /// The first sample of the top row.
  let start: UnsafeRawPointer
  /// The bytes from a row to the next.
  let stride: Int
  let size: PixelSize
  /// The bits of a sample: 8, in one byte, or up to 14, in two bytes in the processor's order.
  let depth: Int

  /// The bytes of a sample.
  var sampleBytes: Int { depth > 8 ? 2 : 1 }

  /// Returns an area of the plane.
  func cut(_ area: PixelArea) -> Plane {
    Plane(
      start: start + area.y * stride + area.x * sampleBytes, stride: stride,
      size: area.size, depth: depth)
  }
}

/// The planes of a decoded image, in one of the usual colour models of video.
struct PlanarImage {
  let luma: Plane
  /// Cb and Cr, of half or all of the samples on each axis.
  let chroma: (blue: Plane, red: Plane)
  let matrix: ColourMatrix

  /// - Returns: `nil` if the planes do not fit together.
  init?(luma: Plane, blue: Plane, red: Plane, matrix: ColourMatrix) {
    guard [blue.size, red.size].allSatisfy({ Self.isColour($0, of: luma.size) }),
      blue.size == red.size, blue.depth == luma.depth, red.depth == luma.depth
    else { return nil }
    self.luma = luma
    chroma = (blue, red)
    self.matrix = matrix
  }

  /// The samples of luma for one of colour, across and down: 1 or 2.
  var sampling: (across: Int, down: Int) {
    (
      chroma.blue.size.width < luma.size.width ? 2 : 1,
      chroma.blue.size.height < luma.size.height ? 2 : 1
    )
  }

  /// Whether a colour plane has all samples, half of them across, or half of them across and down.
  private static func isColour(_ size: PixelSize, of luma: PixelSize) -> Bool {
    let half = PixelSize(width: (luma.width + 1) / 2, height: (luma.height + 1) / 2)
    return [luma, half, PixelSize(width: half.width, height: luma.height)].contains(size)
  }

  /// Returns a window of the image in RGB, reduced to a size.
  ///
  /// Both steps are weighted sums, so their order changes nothing but rounding and values outside
  /// of RGB, which are clipped once, at the end. Colour planes with half of the samples are never
  /// enlarged to the size of the source.
  ///
  /// - Parameter target: The size of the result; neither side is longer than the window's.
  func reduced(
    to target: PixelSize, showing window: Window, profile: [UInt8], threads: Int = 1
  ) throws(ImageError) -> Image {
    var colours = window
    let (across, down) = (Double(sampling.across), Double(sampling.down))
    colours.x /= across
    colours.width /= across
    colours.y /= down
    colours.height /= down
    let result = try Image(blank: target, bands: 3, profile: profile)
    let parts = Parallel.count(target.height, atLeast: Image.leastRows, threads)
    let views = (window, colours)
    try Parallel.run(parts) { part throws(ImageError) in
      let rows = Parallel.part(part, of: parts, in: 0..<target.height)
      try reduce(rows, to: target, showing: views) { y, pixels throws(ImageError) in
        try result.write(pixels, row: y)
      }
    }
    return result
  }

  /// Computes rows of the result, from top to bottom.
  ///
  /// - Parameter windows: The visible part of the luma and of the colour planes.
  private func reduce(
    _ lines: Range<Int>, to target: PixelSize, showing windows: (Window, Window),
    write: (_ y: Int, UnsafePointer<UInt8>) throws(ImageError) -> Void
  ) throws(ImageError) {
    var luma = PlaneReducer(of: luma, showing: windows.0, to: target, from: lines.lowerBound)
    var blue = PlaneReducer(
      of: chroma.blue, showing: windows.1, to: target, from: lines.lowerBound)
    var red = PlaneReducer(of: chroma.red, showing: windows.1, to: target, from: lines.lowerBound)
    let capacity = (target.width + 7) / 8 * 8
    let rows = UnsafeMutablePointer<Int16>.allocate(capacity: 3 * capacity)
    rows.initialize(repeating: 0, count: 3 * capacity)
    let pixels = UnsafeMutablePointer<UInt8>.allocate(capacity: 3 * capacity + 1)
    defer {
      rows.deallocate()
      pixels.deallocate()
    }
    let (y, cb, cr) = (rows, rows + capacity, rows + 2 * capacity)
    for line in lines {
      luma.read(line, into: y)
      blue.read(line, into: cb)
      red.read(line, into: cr)
      matrix.convert(
        (UnsafePointer(y), UnsafePointer(cb), UnsafePointer(cr)), width: target.width, to: pixels)
      try write(line, pixels)
    }
  }
}

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
