// ImageFormatTests: when an encoding is worth its loss.

import Core
import Testing

struct ImageFormatTests {
  @Test(arguments: ImageFormat.outputs)
  func `a lossy encoding has to save more than a tenth, a lossless one a byte`(format: ImageFormat)
  {
    let isLossless = format == .png || format == .tiff
    for own in [1, 9, 10, 11, 1_000, 1_001, 123_456] {
      for encoded in [own + 1, own, own - 1, own - own / 10, own - own / 10 - 1, 0] {
        let saves = isLossless ? encoded < own : encoded < own - own / 10
        #expect(format.isWorth(encoding: encoded, inPlaceOf: own) == saves)
      }
    }
  }
}
