// EffectSteps: applies the effects to an image of its final size, in order.

import Model

/// All effects take 8-bit sRGB or grey and return an image in memory, with at most 4 bytes per
/// pixel.
extension Effects {
  /// Applies the effects in the order of the contract; effects without a change are skipped.
  ///
  /// - Parameter density: Pixels per point of the result, the unit of `radius`.
  func apply(to image: consuming Image, density: Double) throws(ImageError) -> Image {
    if let blur { image = try image.blurred(by: blur) }
    if let sharpen { image = try image.sharpened(by: sharpen) }
    switch radius {
    case .points(let points): image = try image.rounded(by: Double(points) * density)
    case .maximum: image = try image.rounded(by: .infinity)
    case nil: break
    }
    guard let tone = Tone(self) else { return image }
    return try tone.apply(to: image)
  }
}

extension Image {
  /// Returns an image of the same size in memory, computed row by row.
  ///
  /// - Parameters:
  ///   - bands: The bands of the result.
  ///   - change: Receives a row's index, its bytes, and the buffer for the result.
  func mapped(
    bands: Int,
    _ change: (Int, UnsafePointer<UInt8>, UnsafeMutablePointer<UInt8>) throws(ImageError) -> Void
  ) throws(ImageError) -> Image {
    let size = self.size
    let result = try Image(blank: size, bands: bands, profile: [])
    let rows = try PixelRows(of: self)
    let line = UnsafeMutablePointer<UInt8>.allocate(capacity: size.width * bands)
    defer { line.deallocate() }
    line.initialize(repeating: 0, count: size.width * bands)
    for y in 0..<size.height {
      try change(y, try rows.row(y), line)
      try result.write(line, row: y)
    }
    return result
  }
}
