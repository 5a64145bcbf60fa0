// Rounding: rounds an image's corners with antialiasing.

import Model

extension Image {
  /// The number of sample lines per row; along a line the coverage of a pixel is exact.
  private static let linesPerRow = 16

  /// Rounds the corners; pixels outside become transparent black.
  ///
  /// - Parameter radius: The radius in pixels, at most half of the shorter side.
  consuming func rounded(by radius: Double) throws(ImageError) -> Image {
    let image = hasAlpha ? self : try withOpaqueAlpha()
    let size = image.size
    let bands = image.bands
    let width = Double(size.width)
    let height = Double(size.height)
    let radius = min(radius, width / 2, height / 2)
    var insets = [Double](repeating: 0, count: Self.linesPerRow)
    return try image.mapped(bands: bands) { y, row, result throws(ImageError) in
      result.update(from: row, count: size.width * bands)
      guard Double(min(y, size.height - 1 - y)) < radius else { return }
      for line in insets.indices {
        let middle = Double(y) + (Double(line) + 0.5) / Double(Self.linesPerRow)
        let rise = max(0, radius - min(middle, height - middle))
        insets[line] = radius - (radius * radius - rise * rise).squareRoot()
      }
      let maximum = insets.max() ?? 0
      for x in 0..<min(Int(maximum.rounded(.up)), (size.width + 1) / 2) {
        var inside = 0.0
        for inset in insets {
          inside += max(0, min(Double(x + 1), width - inset) - max(Double(x), inset))
        }
        let share = inside / Double(Self.linesPerRow)
        Self.keep(share, of: result + x * bands, bands: bands)
        let mirrored = size.width - 1 - x
        if mirrored > x { Self.keep(share, of: result + mirrored * bands, bands: bands) }
      }
    }
  }

  private static func keep(_ share: Double, of pixel: UnsafeMutablePointer<UInt8>, bands: Int) {
    let alpha = UInt8((Double(pixel[bands - 1]) * min(share, 1)).rounded())
    pixel[bands - 1] = alpha
    // The colour is invisible, and zeros encode to fewer bytes.
    if alpha == 0 { pixel.update(repeating: 0, count: bands - 1) }
  }
}
