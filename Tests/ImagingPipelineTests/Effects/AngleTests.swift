// AngleTests: results turned by any angle, compared with plain linear interpolation.

import Core
import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) struct AngleTests {
  private static let red = Color(red: 255, green: 0, blue: 0)
  private static let angles = [0.4, 30, 45, 123.45, 200, 359.5]

  /// Turns pixels clockwise around their middle: each pixel of the result mixes the four that its
  /// place lies between, weighted by alpha. Around the image is `color` with its alpha.
  private func turned(_ image: Pixels, by degrees: Double, on color: [Double]) -> Pixels {
    let (c, s) = (cos(degrees * .pi / 180), sin(degrees * .pi / 180))
    let (w, h) = (Double(image.size.width), Double(image.size.height))
    let width = Int((w * abs(c) + h * abs(s)).rounded())
    let height = Int((w * abs(s) + h * abs(c)).rounded())
    func pixel(_ x: Int, _ y: Int) -> [Double] {
      guard (0..<image.size.width).contains(x), (0..<image.size.height).contains(y) else {
        return color
      }
      return image.rgb(x: x, y: y).map(Double.init) + [
        image.bands == 4 ? Double(image[x, y][3]) : 255
      ]
    }
    return Pixels(width: width, height: height, bands: 4) { column, row in
      let (u, v) = (
        Double(column) - Double(width - 1) / 2, Double(row) - Double(height - 1) / 2
      )
      let (x, y) = (c * u + s * v + (w - 1) / 2, c * v - s * u + (h - 1) / 2)
      let (left, top) = (Int(x.rounded(.down)), Int(y.rounded(.down)))
      var sum = [0.0, 0, 0, 0]
      for (dx, dy) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
        let weight = (1 - abs(x - Double(left + dx))) * (1 - abs(y - Double(top + dy)))
        let found = pixel(left + dx, top + dy)
        for band in 0..<3 { sum[band] += found[band] * found[3] * weight }
        sum[3] += found[3] * weight
      }
      let colours = sum[..<3].map { sum[3] > 0 ? UInt8(($0 / sum[3]).rounded()) : 0 }
      return colours + [UInt8(sum[3].rounded())]
    }
  }

  private func made(_ image: Pixels, _ change: (inout Transform) -> Void) throws -> Pixels {
    try Made(try TestImages.encode(image, as: ".png"), format: .png, change: change).pixels()
  }

  @Test(arguments: angles)
  func `an angle turns the image on transparent corners`(angle: Double) throws {
    for bands in [1, 2, 3, 4] {
      let image = Pixels.textured(width: 50, height: 31, bands: bands)
      let result = try made(image) { $0.sizing.angle = angle }
      let colour = Pixels(width: 50, height: 31, bands: bands < 3 ? bands + 2 : bands) { x, y in
        bands < 3 ? image.rgb(x: x, y: y) + image[x, y].dropFirst() : image[x, y]
      }
      let expected = turned(colour, by: angle, on: [0, 0, 0, 0])
      #expect(result.bands == (bands < 3 ? 2 : 4))
      let seen = Pixels(width: result.size.width, height: result.size.height, bands: 4) {
        result.rgb(x: $0, y: $1) + [result[$0, $1][result.bands - 1]]
      }
      #expect(seen.largestDifference(to: expected) <= 1, "\(bands) bands")
    }
  }

  @Test(arguments: angles)
  func `corners have the background, and white where the format has no alpha`(
    angle: Double
  ) throws {
    let image = Pixels.textured(width: 40, height: 33)
    let onRed = try made(image) {
      $0.sizing.angle = angle
      $0.background = Self.red
    }
    let expected = turned(image, by: angle, on: [255, 0, 0, 255])
    #expect(onRed.bands == 3 && onRed.size == expected.size)
    let opaque = Pixels(width: onRed.size.width, height: onRed.size.height) { onRed[$0, $1] }
    let plain = Pixels(width: onRed.size.width, height: onRed.size.height) {
      expected.rgb(x: $0, y: $1)
    }
    #expect(opaque.largestDifference(to: plain) <= 1)
    let source = try TestImages.encode(image, as: ".png")
    let jpeg = try Made(source, format: .jpeg, quality: 95) { $0.sizing.angle = 45 }
    #expect(isClose(try jpeg.pixels().rgb(x: 1, y: 1), to: [255, 255, 255]))
    // Without a format, alpha decides.
    #expect(try Made(source) { $0.sizing.angle = 45 }.format == .png)
    let filled = try Made(source) { ($0.sizing.angle, $0.background) = (45, Self.red) }
    #expect(filled.format == .jpeg)
  }

  @Test func `the angle comes after cover and rounded corners, before padding and watermark`()
    throws
  {
    // given
    let image = Pixels.textured(width: 80, height: 60)
    func change(_ transform: inout Transform) {
      (transform.width, transform.height, transform.fit) = (30, 30, .cover)
      transform.effects.radius = .points(9)
    }
    let plain = try made(image, change)
    // when
    let result = try made(image) {
      change(&$0)
      $0.sizing.angle = 30
      $0.sizing.padding = Edges([0, 0, 3, 5]) ?? Edges()
      $0.background = Color(red: 0, green: 0, blue: 255)
    }
    // then
    let expected = turned(plain, by: 30, on: [0, 0, 255, 255])
    let (width, height) = (expected.size.width, expected.size.height)
    #expect(width == 41 && result.size == PixelSize(width: width + 5, height: height + 3))
    let inner = result.cut(x: 5, y: 0, width: width, height: height)
    #expect(inner.largestDifference(to: expected) <= 1)
    #expect(result[2, 2] == [0, 0, 255, 255] && result[20, height + 1] == [0, 0, 255, 255])
    let mark = Mark(
      try TestImages.encode(Pixels(width: 4, height: 4, color: [9, 8, 7]), as: ".png"))
    let marked = try Made(
      try TestImages.encode(image, as: ".png"), mark: mark, format: .png
    ) {
      change(&$0)
      $0.sizing.angle = 30
    }.pixels()
    #expect(marked[width - 2, height - 2] == [9, 8, 7, 255])
  }

  @Test func `each frame turns, and contain turns its box`() throws {
    let source = try TestImages.animatedWebP(
      width: 60, height: 40, frames: 3, delays: [40, 50, 60], loop: 1)
    let made = try Made(source, format: .webp, quality: 95) { $0.sizing.angle = 90.5 }
    #expect(made.frames == 3 && made.size == PixelSize(width: 41, height: 60))
    for frame in 0..<3 {
      let pixels = try made.pixels(frame: frame)
      #expect(isClose(pixels.rgb(x: 20, y: 30), to: TestImages.frameColor(frame), within: 20))
    }
    let boxed = try Made(
      try TestImages.encode(.textured(width: 40, height: 10), as: ".png"), width: 40, height: 40,
      fit: .contain, format: .png
    ) { $0.sizing.angle = 45 }.pixels()
    #expect(boxed.size == PixelSize(width: 57, height: 57))
    #expect(boxed[28, 8] == [255, 255, 255, 255] && boxed[2, 2][3] == 0)
  }
}
