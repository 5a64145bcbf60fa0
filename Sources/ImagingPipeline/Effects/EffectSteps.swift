// EffectSteps: what is done to the pixels of an image that has its size, one effect after the other.

import Model

/// All effects work on 8 bits of sRGB or grey and leave an image in memory, of 4 bytes a pixel at most.
///
/// Measured on a photo (`benchmark-pipeline Landscape_1.jpg 300 1 --format jpeg --effect blur=2.5`), ms of processor more at
/// 300×200 and 1200×800: `blur` 7 and 23 at 0.5, 15 and 90 at most (2.6), 11 and 53 at 250; `sharpen` 13 and 100 at 0.5, 22
/// and 226 at 10; `saturation` 3 and 92; `radius`, `tint` and `grayscale` less than the encoder gains or loses by them.
extension Effects {
  /// Applies them, in the contract's order; those that change nothing are left out.
  ///
  /// - Parameter density: Pixels per point of the result, which `radius` counts in.
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
  /// An image of the same size, made row by row, in memory.
  ///
  /// - Parameters:
  ///   - bands: Of the result.
  ///   - change: Gets a row's number and bytes, and where to write it.
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
