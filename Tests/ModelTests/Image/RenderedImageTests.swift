// RenderedImageTests: tests that the properties of an image keep their values.

import Core
import Testing

struct RenderedImageTests {
  @Test func `the properties are what was set, up to their greatest values`() {
    let huge = PixelSize(width: .max, height: 1)
    let largest = PixelSize(width: Int(UInt32.max), height: 10_000_000)
    var image = RenderedImage(
      format: .avif, size: largest, frames: Int(Int32.max), density: 1_000, scaledDownFrom: huge,
      quality: 100, droppedFrames: Int(Int32.max))
    #expect(image.droppedFrames == Int(Int32.max))
    #expect(image.format == .avif && image.size == largest && image.frames == Int(Int32.max))
    #expect(image.density == 1_000 && image.scaledDownFrom == huge && image.quality == 100)
    image.size = PixelSize(width: 3, height: 4)
    image.frames = 1
    image.quality = nil
    image.droppedFrames = 0
    image.scaledDownFrom = nil
    #expect(
      image
        == RenderedImage(format: .avif, size: PixelSize(width: 3, height: 4), density: 1_000))
  }

  @Test func `numbers outside their ranges are clamped`() {
    let image = RenderedImage(
      format: .png, size: PixelSize(width: .max, height: -1), frames: .max, density: 1,
      quality: 1_000)
    #expect(image.size == PixelSize(width: Int(UInt32.max), height: 0))
    #expect(image.frames == Int(UInt32.max) && image.quality == 255)
  }
}
