// AlphaTests: transparency is kept or flattened, and never bleeds into colours.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) struct AlphaTests {
  private let red = Color(red: 255, green: 0, blue: 0)

  @Test(
    arguments: [
      ".png", ".png[palette,dither=0]", ".tif", ".webp[lossless]", ".gif[dither=0]", "deep",
    ],
    [31, 64, 200])
  func `transparent colours do not bleed into resized pixels`(suffix: String, width: Int) throws {
    // given: opaque white in transparent green, reduced by Pictor and enlarged by libvips
    let isDeep = suffix == "deep"
    let source = try TestImages.encode(
      disc(white: [255, 255, 255, 255]), as: isDeep ? ".png" : suffix, sixteenBits: isDeep)
    // when
    let made = try Made(source, width: width, format: .png) { $0.enlarge = true }.pixels()
    // then
    expectNoGreen(made)
  }

  @Test(arguments: [".gif[dither=0]", ".webp[lossless]"], [40, 140])
  func `transparent colours do not bleed into frames of an animation`(suffix: String, width: Int)
    throws
  {
    // given
    let frames = [disc(white: [255, 255, 255, 255]), disc(white: [240, 240, 240, 255])]
    let source = try TestImages.animation(frames, as: suffix)
    // when
    let made = try Made(source, width: width) { $0.enlarge = true }
    // then
    #expect(made.frames == 2)
    for frame in 0..<2 { expectNoGreen(try made.pixels(frame: frame), least: 225) }
  }

  @Test(arguments: [20, 64, 150])
  func `a nearly transparent colour is kept`(width: Int) throws {
    // given: an alpha that leaves three of eight bits for a colour
    for alpha in [6, 10, 40] as [UInt8] {
      let source = try TestImages.encode(
        Pixels(width: 64, height: 64, color: [200, 100, 50, alpha]), as: ".png")
      // when
      let made = try Made(source, width: width) { $0.enlarge = true }.pixels()
      // then
      let pixel = made[width / 2, width / 2]
      #expect(pixel[3] == alpha)
      #expect(isClose(Array(pixel[0..<3]), to: [200, 100, 50], within: 1), "\(pixel)")
    }
  }

  /// Returns a disc in transparent green.
  private func disc(white: [UInt8]) -> Pixels {
    Pixels(width: 90, height: 90, bands: 4) { x, y in
      (x - 45) * (x - 45) + (y - 45) * (y - 45) < 1_000 ? white : [0, 255, 0, 0]
    }
  }

  private func expectNoGreen(_ pixels: Pixels, least: UInt8 = 240) {
    #expect(pixels.bands == 4)
    let width = pixels.size.width
    let height = pixels.size.height
    var seen = 0
    for y in 0..<height {
      for x in 0..<width where pixels[x, y][3] > 16 {
        seen += 1
        if !pixels.rgb(x: x, y: y).allSatisfy({ $0 >= least }) {
          Issue.record("\(x), \(y): \(pixels[x, y])")
          return
        }
      }
    }
    #expect(seen > width * height / 4)
    #expect(pixels[width / 2, height / 2][3] == 255 && pixels[1, 1][3] == 0)
  }

  @Test func `without a resize, pixels are unchanged`() throws {
    let scene = Pixels.scene(width: 90, height: 60, alpha: true)
    let made = try Made(try TestImages.encode(scene, as: ".png"))
    #expect(try made.pixels().values == scene.values)
  }

  @Test func `a JPEG shows the background where the source is transparent`() throws {
    // given
    let source = try TestImages.encode(
      Pixels(width: 40, height: 40, color: [0, 0, 255, 128]), as: ".png")
    // when
    let white = try Made(source) { $0.format = .jpeg }.pixels()
    let onRed = try Made(source, format: .jpeg) { $0.background = red }.pixels()
    // then
    #expect(isClose(white.rgb(x: 20, y: 20), to: [127, 127, 255]))
    #expect(isClose(onRed.rgb(x: 20, y: 20), to: [127, 0, 128]))
  }

  @Test func `contain pads with the background`() throws {
    // given
    let source = try TestImages.jpeg(width: 200, height: 100)
    // when
    let white = try Made(source, width: 80, height: 80, fit: .contain)
    let onRed = try Made(source, width: 80, height: 80, fit: .contain) {
      $0.background = red
      $0.position = .top
    }
    // then
    #expect(white.size == PixelSize(width: 80, height: 80) && white.format == .jpeg)
    let (centred, top) = (try white.pixels(), try onRed.pixels())
    #expect(
      isClose(centred.rgb(x: 40, y: 5), to: [255, 255, 255])
        && isClose(centred.rgb(x: 40, y: 75), to: [255, 255, 255]))
    #expect(isClose(centred.rgb(x: 5, y: 25), to: [220, 30, 30], within: 20))
    #expect(isClose(top.rgb(x: 40, y: 60), to: [254, 0, 0]))
    #expect(isClose(top.rgb(x: 75, y: 4), to: [30, 200, 40], within: 20))
  }

  @Test func `a background with alpha gives transparent padding, so the format is PNG`() throws {
    // given
    let source = try TestImages.jpeg(width: 200, height: 100)
    // when
    let made = try Made(source, width: 80, height: 80, fit: .contain) {
      $0.background = Color(red: 1, green: 2, blue: 3, alpha: 0)
    }
    // then
    let pixels = try made.pixels()
    #expect(made.format == .png && pixels[40, 5] == [1, 2, 3, 0] && pixels[40, 40][3] == 255)
  }

  @Test func `grey on a coloured background becomes colour`() throws {
    let source = try TestImages.encode(Pixels(width: 20, height: 40, color: [90, 0]), as: ".png")
    let made = try Made(source, format: .jpeg) {
      $0.background = Color(red: 255, green: 0, blue: 0)
    }
    #expect(isClose(try made.pixels().rgb(x: 10, y: 10), to: [254, 0, 0]))
  }
}
