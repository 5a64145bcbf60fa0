// PlanarImage+Reduction: reduces luma and colour each by itself, and converts the small image to RGB.

import Model

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
  func reduced(
    to target: PixelSize, showing window: Window, profile: [UInt8]
  ) throws(ImageError) -> Image {
    var colours = window
    if chroma.blue.size.width < luma.size.width {
      colours.x /= 2
      colours.width /= 2
    }
    if chroma.blue.size.height < luma.size.height {
      colours.y /= 2
      colours.height /= 2
    }
    let result = try Image(blank: target, bands: 3, profile: profile)
    var luma = PlaneReducer(of: luma, showing: window, to: target)
    var blue = PlaneReducer(of: chroma.blue, showing: colours, to: target)
    var red = PlaneReducer(of: chroma.red, showing: colours, to: target)
    let capacity = (target.width + 7) / 8 * 8
    let rows = UnsafeMutablePointer<Int16>.allocate(capacity: 3 * capacity)
    rows.initialize(repeating: 0, count: 3 * capacity)
    let pixels = UnsafeMutablePointer<UInt8>.allocate(capacity: 3 * capacity + 1)
    defer {
      rows.deallocate()
      pixels.deallocate()
    }
    let (y, cb, cr) = (rows, rows + capacity, rows + 2 * capacity)
    for line in 0..<target.height {
      luma.read(line, into: y)
      blue.read(line, into: cb)
      red.read(line, into: cr)
      matrix.convert(
        (UnsafePointer(y), UnsafePointer(cb), UnsafePointer(cr)), width: target.width, to: pixels)
      try result.write(pixels, row: line)
    }
    return result
  }
}
