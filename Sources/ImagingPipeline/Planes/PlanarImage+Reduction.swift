// PlanarImage+Reduction: reduces luma and colour each by itself, and converts the small image to RGB.

import Model
import Platform

extension PlanarImage {
  /// Returns a window of the image in RGB, reduced to a size.
  ///
  /// Both steps are weighted sums, so their order changes nothing but rounding and values outside of RGB, which are clipped
  /// once, at the end. Colour planes with half of the samples are never enlarged to the size of the source.
  ///
  /// - Parameters:
  ///   - window: The visible part, in pixels.
  ///   - target: The size of the result; neither side is longer than the window's.
  ///   - profile: The ICC profile of the result; empty for none.
  ///   - threads: The most threads that reduce.
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
