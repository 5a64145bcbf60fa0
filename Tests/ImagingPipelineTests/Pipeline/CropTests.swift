// CropTests: which part of an image a crop keeps, and that an enlarged one keeps its position.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) struct CropTests {
  private static let scene = Pixels.scene(width: 300, height: 200)

  @Test(arguments: [
    (Position.left, 0), (.leftTop, 0), (.leftBottom, 0), (.center, 100), (.top, 100),
    (.bottom, 100),
    (.right, 200), (.rightTop, 200), (.rightBottom, 200),
  ])
  func `cover keeps the part that the position names`(position: Position, x: Int) throws {
    let source = try TestImages.jpeg(width: 1200, height: 800)
    let made = try Made(source, width: 100, height: 200, fit: .cover) { $0.position = position }
    #expect(
      try made.pixels().psnr(to: Self.scene.cut(x: x, y: 0, width: 100, height: 200)) > 28)
  }

  @Test(arguments: [Position.top, .bottom])
  func `cover keeps the upper or lower part`(position: Position) throws {
    let source = try TestImages.jpeg(width: 1200, height: 800)
    let made = try Made(source, width: 300, height: 50, fit: .cover) { $0.position = position }
    let part = Self.scene.cut(x: 0, y: position == .top ? 0 : 150, width: 300, height: 50)
    #expect(try made.pixels().psnr(to: part) > 28)
  }

  /// Returns a grey field with a colourful pattern in its right quarter.
  private func loudOnTheRight() throws -> [UInt8] {
    try TestImages.encode(
      Pixels(width: 400, height: 100) { x, y in
        x < 300 ? [120, 120, 120] : [UInt8(x * 37 % 256), UInt8(y * 91 % 256), UInt8(x * y % 256)]
      }, as: ".png")
  }

  @Test(arguments: [Position.entropy, .attention])
  func `entropy and attention find the detailed part`(position: Position) throws {
    // given
    let source = try loudOnTheRight()
    // when
    let made = try Made(source, width: 100, height: 100, fit: .cover, format: .png) {
      $0.position = position
    }
    // then
    let quiet = Pixels(width: 100, height: 100, color: [120, 120, 120])
    #expect(made.size == PixelSize(width: 100, height: 100))
    #expect(try made.pixels().meanDifference(to: quiet) > 30)
  }

  @Test(arguments: [Position.entropy, .attention])
  func `an animation is cropped at the same place in all frames`(position: Position) throws {
    // given: the pattern is on the right in the first frame, on the left in the others
    let frames = (0..<3).map { frame in
      Pixels(width: 200, height: 50) { x, y in
        (frame == 0 ? x >= 150 : x < 50)
          ? [UInt8(x * 37 % 256), UInt8(y * 5), 200] : [120, 120, UInt8(118 + frame)]
      }
    }
    let source = try TestImages.animation(frames, as: ".webp[lossless]")
    // when
    let made = try Made(source, width: 50, height: 50, fit: .cover) { $0.position = position }
    // then
    let quiet = Pixels(width: 50, height: 50, color: [120, 120, 120])
    #expect(made.frames == 3 && made.size == PixelSize(width: 50, height: 50))
    #expect(try made.pixels(frame: 0).meanDifference(to: quiet) > 20)
    #expect(try made.pixels(frame: 2).meanDifference(to: quiet) < 5)
  }

  @Test(arguments: [25, 40, 60, 137], [3, 4, 9])
  func `an enlarged image keeps its position`(width: Int, height: Int) throws {
    // given: a shade that rises by 12 with each pixel to the right
    for bands in [3, 4] {
      let source = try TestImages.encode(
        Pixels(width: 20, height: 4, bands: bands) { x, _ in
          [UInt8(x * 12), 80, 80] + (bands == 4 ? [255] : [])
        }, as: ".png")
      // when
      let made = try Made(source, width: width, height: height, fit: .fill, format: .png) {
        $0.enlarge = true
      }.pixels()
      // then: correct except at the edges, where no neighbours exist
      #expect(made.size == PixelSize(width: width, height: height))
      for x in width / 10..<width - width / 10 {
        let exact = 12 * ((Double(x) + 0.5) * 20 / Double(width) - 0.5)
        #expect(abs(Double(made[x, height / 2][0]) - exact) <= 1.1, "at \(x)")
      }
    }
  }
}
