// PartTests: the requested region of the upright image, on which all later steps work.

import Core
import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) struct PartTests {
  private func area(x: Int, y: Int, width: Int, height: Int) -> PixelArea {
    PixelArea(x: x, y: y, size: PixelSize(width: width, height: height))
  }

  @Test(arguments: Rotation.allCases)
  func `a crop is cut exactly from the rotated image`(rotation: Rotation) throws {
    // given
    let scene = Pixels.textured(width: 60, height: 40, bands: 4)
    for suffix in [".png", ".webp[lossless]"] {
      let source = try TestImages.encode(scene, as: suffix)
      // when
      let made = try Made(source) {
        $0.rotation = rotation
        $0.crop = area(x: 7, y: 11, width: 30, height: 20)
        $0.format = .png
      }
      // then
      let expected = scene.turned(by: rotation).cut(x: 7, y: 11, width: 30, height: 20)
      #expect(made.size == expected.size)
      #expect(try made.pixels().onBlack.values == expected.onBlack.values)
    }
  }

  /// Returns a window of an image at another size, with each result pixel as the mean of the area
  /// it covers.
  private func averaged(
    _ source: Pixels, x: Double, y: Double, width: Double, height: Double, to size: PixelSize
  ) -> Pixels {
    func spans(start: Double, length: Double, count: Int, maximum: Int) -> [[(Int, Double)]] {
      (0..<count).map { index in
        let low = start + length * Double(index) / Double(count)
        let high = start + length * Double(index + 1) / Double(count)
        return (max(0, Int(low))...min(maximum - 1, Int(high))).map { pixel in
          (pixel, max(0, min(high, Double(pixel + 1)) - max(low, Double(pixel))) / (high - low))
        }
      }
    }
    let across = spans(start: x, length: width, count: size.width, maximum: source.size.width)
    let down = spans(start: y, length: height, count: size.height, maximum: source.size.height)
    return Pixels(width: size.width, height: size.height) { x, y in
      var sums = [0.0, 0.0, 0.0]
      for (line, share) in down[y] {
        for (column, part) in across[x] {
          let start = (line * source.size.width + column) * 3
          for band in 0..<3 { sums[band] += Double(source.values[start + band]) * share * part }
        }
      }
      return sums.map { UInt8(min(max($0.rounded(), 0), 255)) }
    }
  }

  @Test(
    arguments: [
      ".jpg[Q=95]", ".jpg[Q=95,interlace]", ".webp[Q=95,effort=1]", ".png[compression=1]",
    ],
    [20, 40, 80])
  func `a crop with shrink-on-load is accurate to a quarter of a pixel`(
    suffix: String, width: Int
  ) throws {
    // given: waves, so that each shift is visible; sizes that no shrink factor divides
    let waves = Pixels(width: 400, height: 300) { x, y in
      [
        UInt8(128 + 100 * sin(Double(x) / 17)), UInt8(128 + 100 * sin(Double(y) / 19)),
        UInt8(128 + 100 * sin(Double(x + y) / 23)),
      ]
    }
    let source = try TestImages.encode(waves, as: suffix)
    let decoded = try Pixels(decoding: source)
    // when
    let made = try Made(source, width: width, format: .png) {
      $0.crop = area(x: 51, y: 27, width: 253, height: 167)
    }.pixels()
    // then
    func likeness(right: Double, down: Double) -> Double {
      let step = 253 / Double(width)
      return made.psnr(
        to: averaged(
          decoded, x: 51 + right * step, y: 27 + down * step, width: 253, height: 167,
          to: made.size))
    }
    let here = likeness(right: 0, down: 0)
    #expect(here > 28)
    for (right, down) in [(0.25, 0.0), (-0.25, 0), (0, 0.25), (0, -0.25)] {
      #expect(likeness(right: right, down: down) < here)
    }
  }

  @Test(arguments: 1...8)
  func `a crop of a rotated photo applies to the upright photo`(tag: Int) throws {
    let photo = try TestImages.jpeg(width: 1200, height: 800, orientation: tag)
    let made = try Made(photo, width: 150) { $0.crop = area(x: 3, y: 5, width: 597, height: 395) }
    #expect(made.size == PixelSize(width: 150, height: 99))
    let expected = Pixels.scene(width: 300, height: 200).cut(x: 1, y: 1, width: 150, height: 99)
    #expect(try made.pixels().psnr(to: expected) > 26)
  }

  @Test func `a crop is clipped to the image, and one outside it is refused`() throws {
    // given
    let source = try TestImages.encode(.textured(width: 60, height: 40), as: ".png")
    // when, then
    let made = try Made(source) { $0.crop = area(x: 50, y: 30, width: 1_000, height: 1_000) }
    #expect(made.size == PixelSize(width: 10, height: 10))
    for outside in [area(x: 60, y: 0, width: 1, height: 1), area(x: 0, y: 40, width: 1, height: 1)]
    {
      #expect(
        Made.error(source) { $0.crop = outside }
          == .invalidParameter(
            name: "crop", value: outside.description,
            allowed: "a part of the image, which is 60x40"))
    }
    #expect(
      try Made(source) {
        $0.crop = area(x: 0, y: 40, width: 9, height: 9)
        $0.rotation = .quarter
      }.size.width == 9)
  }

  @Test func `sizes, densities and limits are relative to the crop`() throws {
    // given
    let source = try TestImages.encode(.textured(width: 240, height: 160), as: ".png")
    // when
    let whole = try Made(source, density: 2) { $0.crop = area(x: 0, y: 0, width: 100, height: 50) }
    let half = try Made(source, density: 2) {
      $0.crop = area(x: 0, y: 0, width: 100, height: 50)
      $0.scale = 1
    }
    let kept = try Made(source, width: 200) { $0.crop = area(x: 0, y: 0, width: 100, height: 50) }
    let limited = try Made(source) {
      $0.crop = area(x: 0, y: 0, width: 100, height: 50)
      $0.limitBytes = 20_000
    }
    // then
    #expect(whole.size == PixelSize(width: 100, height: 50) && whole.density == 2)
    #expect(half.size == PixelSize(width: 50, height: 25) && half.density == 1)
    #expect(kept.size == PixelSize(width: 100, height: 50))
    #expect(limited.scaledDownFrom == nil)
  }

  @Test func `a crop of a vector image is drawn, not enlarged`() throws {
    // given: blue from 15 to 30 across and 10 to 20 down
    let source = TestImages.svg(width: 30, height: 20)
    // when
    let made = try Made(source, width: 400) { $0.crop = area(x: 10, y: 9, width: 10, height: 5) }
    let pixels = try made.pixels()
    // then
    #expect(made.size == PixelSize(width: 400, height: 200))
    #expect(isClose(pixels.rgb(x: 198, y: 100), to: [255, 0, 0], within: 2))
    #expect(isClose(pixels.rgb(x: 201, y: 100), to: [0, 0, 255], within: 2))
    #expect(isClose(pixels.rgb(x: 300, y: 38), to: [255, 0, 0], within: 2))
    #expect(isClose(pixels.rgb(x: 300, y: 41), to: [0, 0, 255], within: 2))
  }

  @Test func `a tiny crop of a vector image is drawn within the pixel limit`()
    throws
  {
    let limits = ImagingLimits { $0.maximumPixels = 1_000_000 }
    let made = try Made(TestImages.svg(width: 3_000, height: 2_000), limits: limits, width: 400) {
      $0.crop = area(x: 1_490, y: 1_490, width: 20, height: 20)
    }
    #expect(made.size == PixelSize(width: 400, height: 400))
    #expect(isClose(try made.pixels().rgb(x: 50, y: 200), to: [255, 0, 0]))
    #expect(isClose(try made.pixels().rgb(x: 350, y: 200), to: [0, 0, 255]))
  }

  @Test func `a crop selects the same area of each frame`() throws {
    let frames = (0..<3).map { frame in
      Pixels(width: 40, height: 30) { x, y in
        x >= 20 && y >= 10 ? [250, 250, 250] : TestImages.frameColor(frame)
      }
    }
    let made = try Made(try TestImages.animation(frames, as: ".gif[dither=0]")) {
      $0.crop = area(x: 16, y: 8, width: 8, height: 4)
    }
    #expect(made.frames == 3 && made.size == PixelSize(width: 8, height: 4))
    for frame in 0..<3 {
      let expected = frames[frame].cut(x: 16, y: 8, width: 8, height: 4)
      #expect(try made.pixels(frame: frame).meanDifference(to: expected) < 4)
    }
  }

  @Test(arguments: [(0.0, 0), (0.25, 25), (0.5, 100), (0.9, 200), (1.0, 200)])
  func `cover keeps the focal point as close to the middle as possible`(share: Double, x: Int)
    throws
  {
    let source = try TestImages.encode(.scene(width: 300, height: 200), as: ".png")
    let made = try Made(source, width: 100, height: 200, fit: .cover, format: .png) {
      $0.focalPoint = FocalPoint(x: share, y: 0.5)
    }
    let expected = Pixels.scene(width: 300, height: 200).cut(x: x, y: 0, width: 100, height: 200)
    #expect(try made.pixels().values == expected.values)
  }

  @Test func `contain distributes the padding by the focal point`()
    throws
  {
    let source = try TestImages.encode(Pixels(width: 20, height: 10, color: [9, 9, 9]), as: ".png")
    let made = try Made(source, width: 20, height: 30, fit: .contain, format: .png) {
      $0.focalPoint = FocalPoint(x: 0, y: 0.25)
    }.pixels()
    let rows = (0..<30).filter { made.rgb(x: 10, y: $0) == [9, 9, 9] }
    #expect(rows == Array(5..<15))
  }
}
