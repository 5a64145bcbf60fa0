// TrimTests: uniform borders are removed, and the rest is kept to the pixel.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) struct TrimTests {
  private static let white: [UInt8] = [250, 250, 250]

  /// Returns a textured field of 20 by 12 on a uniform background: 5 from the left, 3 from the top
  /// of 40 by 30.
  private func framed(_ ground: [UInt8] = white, bands: Int = 3) -> Pixels {
    let field = Pixels.textured(width: 20, height: 12)
    return Pixels(width: 40, height: 30, bands: bands) { x, y in
      guard (5..<25).contains(x), (3..<15).contains(y) else { return ground }
      let pixel = field[x - 5, y - 3].map { $0 / 2 }
      return bands == 4 ? pixel + [255] : pixel
    }
  }

  @Test func `uniform borders are trimmed exactly`() throws {
    let image = framed()
    let made = try Made(try TestImages.encode(image, as: ".png"), format: .png) { $0.trim = 10 }
    #expect(try made.pixels().values == image.cut(x: 5, y: 3, width: 20, height: 12).values)
  }

  @Test(arguments: 1...8)
  func `the reference colour is the upper left pixel of the upright image`(tag: Int) throws {
    // given: two uniform backgrounds, so that the choice of corner matters
    let seen = Pixels(width: 30, height: 20) { x, y in
      (10..<20).contains(x) && (5..<9).contains(y)
        ? [200, 10, 10] : y < 15 ? Self.white : [0, 0, 0]
    }
    let source = try TestImages.encode(
      seen.stored(forOrientation: tag), as: ".webp[lossless]", orientation: tag)
    // when
    let made = try Made(source, format: .png) { $0.trim = 10 }
    let flipped = try Made(source) {
      $0.trim = 10
      $0.flip = .vertical
      $0.format = .png
    }
    // then: only the background of the upper left corner is trimmed, before and after the flip
    #expect(
      try made.pixels().values == seen.cut(x: 0, y: 5, width: 30, height: 15).values)
    #expect(
      try flipped.pixels().values
        == seen.cut(x: 0, y: 0, width: 30, height: 15).turned(by: .none, flip: .vertical).values)
  }

  @Test func `borders of a colour are trimmed, whatever the corner has`() throws {
    // given: a dark corner on a white border, opaque and with alpha
    for (bands, white) in [(1, [250]), (3, Self.white), (4, Self.white + [255])] {
      let image = Pixels(width: 40, height: 30, bands: bands) { x, y in
        let isInside = (8..<20).contains(x) && (6..<14).contains(y)
        let dark = white.indices.map { $0 == 3 ? UInt8(255) : UInt8(10) }
        return isInside ? dark : white.map { UInt8($0) }
      }
      let made = try Made(try TestImages.encode(image, as: ".png"), format: .png) {
        $0.trim = 10
        $0.selection.trimColor = .white
      }
      let kept = try Made(try TestImages.encode(image, as: ".png"), format: .png) {
        $0.trim = 10
        $0.selection.trimColor = Color(red: 0, green: 0, blue: 0)
      }
      // then: black borders are not there
      #expect(made.size == PixelSize(width: 12, height: 8), "\(bands)")
      #expect(kept.size == image.size)
    }
  }

  @Test(arguments: 1...8)
  func `opposite borders can be trimmed alike`(tag: Int) throws {
    // given: borders of 5 and 15 pixels across, of 3 and 15 down, as seen
    let seen = framed()
    let source = try TestImages.encode(
      seen.stored(forOrientation: tag), as: ".webp[lossless]", orientation: tag)
    for (axes, area) in [
      (Axes.horizontal, (x: 5, y: 3, width: 30, height: 12)),
      (.vertical, (x: 5, y: 3, width: 20, height: 24)),
      (.both, (x: 5, y: 3, width: 30, height: 24)),
    ] {
      let made = try Made(source, format: .png) {
        $0.trim = 10
        $0.selection.trimEqual = axes
      }
      #expect(
        try made.pixels().values
          == seen.cut(x: area.x, y: area.y, width: area.width, height: area.height).values)
    }
  }

  @Test func `the tolerance sets how much a border may differ`() throws {
    // given: a background that rises by 6 to the right
    let image = Pixels(width: 60, height: 30) { x, y in
      (20..<30).contains(x) && (10..<20).contains(y) ? [0, 0, 0] : [200, 200, UInt8(200 + x / 10)]
    }
    let source = try TestImages.encode(image, as: ".png")
    // when, then
    #expect(try Made(source) { $0.trim = 5 }.size == PixelSize(width: 10, height: 10))
    #expect(try Made(source) { $0.trim = 4 }.size == PixelSize(width: 40, height: 30))
  }

  @Test func `a uniform image is not trimmed`() throws {
    let plain = try TestImages.encode(Pixels(width: 40, height: 30, color: [7, 8, 9]), as: ".png")
    #expect(try Made(plain) { $0.trim = 1 }.size == PixelSize(width: 40, height: 30))
    let loud = try TestImages.encode(framed(), as: ".png")
    #expect(try Made(loud) { $0.trim = 255 }.size == PixelSize(width: 40, height: 30))
  }

  @Test func `transparent borders are trimmed, regardless of their colour`() throws {
    // given: a transparent background in many colours
    let field = framed([1, 2, 3, 0], bands: 4)
    let image = Pixels(width: 40, height: 30, bands: 4) { x, y in
      field[x, y][3] == 0 ? [UInt8(x * 6), UInt8(y * 8), 77, 0] : field[x, y]
    }
    // when
    let made = try Made(try TestImages.encode(image, as: ".png")) { $0.trim = 10 }
    // then
    #expect(try made.pixels().values == image.cut(x: 5, y: 3, width: 20, height: 12).values)
  }

  @Test func `grey and 16-bit images are trimmed as well`() throws {
    let grey = Pixels(width: 40, height: 30, bands: 1) { x, y in
      (5..<25).contains(x) && (3..<15).contains(y) ? [40] : [250]
    }
    for bits in [false, true] {
      let made = try Made(try TestImages.encode(grey, as: ".png", sixteenBits: bits)) {
        $0.trim = 10
      }
      #expect(made.size == PixelSize(width: 20, height: 12))
    }
  }

  @Test func `trim applies after the crop and before the resize`() throws {
    // given
    let source = try TestImages.encode(framed(), as: ".png")
    // when
    let cropped = try Made(source) {
      $0.trim = 10
      $0.crop = PixelArea(x: 0, y: 0, size: PixelSize(width: 10, height: 30))
    }
    let small = try Made(source, width: 10) { $0.trim = 10 }
    let turned = try Made(source) {
      $0.trim = 10
      $0.rotation = .quarter
      $0.scale = 0.5
    }
    // then
    #expect(cropped.size == PixelSize(width: 5, height: 12))
    #expect(small.size == PixelSize(width: 10, height: 6))
    #expect(turned.size == PixelSize(width: 6, height: 10))
  }

  @Test func `a photo larger than the decoder's strips is trimmed and reduced`() throws {
    // given: a field of 1200 by 800 with a border of 200
    let field = Pixels.scene(width: 300, height: 200)
    let image = Pixels(width: 400, height: 300) { x, y in
      (50..<350).contains(x) && (50..<250).contains(y) ? field[x - 50, y - 50] : Self.white
    }
    for orientation in [1, 3, 8] {
      let source = try TestImages.encode(
        image.stored(forOrientation: orientation), as: ".jpg[Q=95]", zoom: 4,
        orientation: orientation
      )
      // when
      let made = try Made(source, width: 300) { $0.trim = 20 }
      // then
      #expect(made.size == PixelSize(width: 300, height: 200))
      #expect(try made.pixels().psnr(to: field) > 28)
    }
  }

  @Test func `an animation is trimmed to the area that all frames need`() throws {
    // given: a moving block, with a different background in each frame, and one frame without the
    // block
    let frames = (0..<4).map { frame in
      Pixels(width: 40, height: 20) { x, y in
        frame < 3 && (10 + 4 * frame..<14 + 4 * frame).contains(x) && (5..<9).contains(y)
          ? [255, 255, 255] : TestImages.frameColor(frame)
      }
    }
    // when
    let source = try TestImages.animation(frames, delays: [50, 60, 70, 80], as: ".gif[dither=0]")
    let made = try Made(source) { $0.trim = 10 }
    let one = try Made(source, frame: 1) { $0.trim = 10 }
    // then
    #expect(made.frames == 4 && made.size == PixelSize(width: 12, height: 4))
    for frame in 0..<4 {
      let expected = frames[frame].cut(x: 10, y: 5, width: 12, height: 4)
      #expect(try made.pixels(frame: frame).meanDifference(to: expected) < 4)
    }
    #expect(try TestImages.delays(of: made.bytes) == [50, 60, 70, 80])
    #expect(one.size == PixelSize(width: 4, height: 4))
  }

  @Test func `unpainted borders of a drawing are trimmed`() throws {
    let text = """
      <svg xmlns="http://www.w3.org/2000/svg" width="60" height="40">\
      <rect x="10" y="5" width="30" height="20" fill="#ff0000"/></svg>
      """
    let made = try Made(Array(text.utf8), width: 300) { $0.trim = 10 }
    #expect(made.size == PixelSize(width: 300, height: 200))
    #expect(try made.pixels().corners.allSatisfy { isClose($0, to: [255, 0, 0], within: 2) })
  }
}
