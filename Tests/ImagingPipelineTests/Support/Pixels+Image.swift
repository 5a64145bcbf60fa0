// Pixels+Image: pixels of a test as an image of the pipeline.

import TestSupport

@testable import ImagingPipeline

extension Pixels {
  /// Returns an image in memory; grey for 1 or 2 bands, sRGB for more.
  func image() throws -> Image {
    TestImages.start()
    let image = try Image(blank: size, bands: bands, profile: [])
    let stride = size.width * bands
    for y in 0..<size.height {
      try image.write(Array(values[y * stride..<(y + 1) * stride]), row: y)
    }
    return image
  }
}
