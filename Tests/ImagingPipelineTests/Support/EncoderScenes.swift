// EncoderScenes: images for the tests of encoders that halve the resolution of chroma.

import Model
import TestSupport

enum EncoderScenes {
  static let sizes: [PixelSize] = [
    PixelSize(width: 1, height: 1), PixelSize(width: 2, height: 1), PixelSize(width: 1, height: 7),
    PixelSize(width: 15, height: 16), PixelSize(width: 64, height: 65),
    PixelSize(width: 331, height: 219), PixelSize(width: 1_003, height: 40),
  ]

  static let colours: [[UInt8]] = [
    [0, 0, 0], [255, 255, 255], [128, 128, 128], [255, 0, 0], [0, 255, 0], [0, 0, 255],
    [255, 255, 0], [0, 255, 255], [255, 0, 255], [200, 130, 90],
  ]

  /// An image without edges of colours, which would be lost.
  static func smooth(_ size: PixelSize) -> Pixels {
    Pixels(width: size.width, height: size.height) { x, y in
      let shade = 60 + 120 * x / size.width + 60 * y / size.height
      return [UInt8(shade), UInt8(shade + 12), UInt8(shade - 20)]
    }
  }
}
