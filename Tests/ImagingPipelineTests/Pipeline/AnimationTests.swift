// AnimationTests: frames, delays and loop counts are kept, and answers tell of lost frames.

import CVips
import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) struct AnimationTests {
  /// Returns whether every frame has its uniform colour, including the edges.
  private func isPlain(_ made: Made, frames: Int, within tolerance: Int = 6) throws -> Bool {
    for frame in 0..<frames {
      let pixels = try made.pixels(frame: frame)
      let color = TestImages.frameColor(frame)
      let right = pixels.size.width - 1
      let bottom = pixels.size.height - 1
      for (x, y) in [(0, 0), (right, 0), (0, bottom), (right, bottom), (right / 2, bottom / 2)]
      where !isClose(pixels.rgb(x: x, y: y), to: color, within: tolerance) { return false }
    }
    return true
  }

  @Test func `a GIF is dithered less than libvips does by default, and not without`() throws {
    let pixels = Pixels(width: 200, height: 160) { x, y in
      [UInt8(x + y / 4), UInt8(40 + y), UInt8(250 - x)]
    }
    let made = try Made(try TestImages.encode(pixels, as: ".png")) { $0.format = .gif }
    let full = try TestImages.encode(pixels, as: ".gif[effort=4]")
    let none = try TestImages.encode(pixels, as: ".gif[effort=4,dither=0]")
    #expect(made.bytes.count < full.count && made.bytes.count > none.count)
  }

  @Test(arguments: [ImageFormat?.none, .gif, .webp], [true, false])
  func `an animation keeps its frames, and none bleeds into the next`(
    format: ImageFormat?, isWebP: Bool
  ) throws {
    // given
    let delays = [30, 70, 120, 40, 990]
    let source =
      isWebP
      ? try TestImages.animatedWebP(width: 97, height: 61, frames: 5, delays: delays)
      : try TestImages.gif(width: 97, height: 61, frames: 5, delays: delays)
    // when
    let made = try Made(source, width: 40, format: format, quality: 95)
    // then
    #expect(made.format == format ?? .gif && made.frames == 5)
    #expect(made.size == PixelSize(width: 40, height: 25))
    #expect(try isPlain(made, frames: 5, within: isWebP || format == .webp ? 16 : 6))
    #expect(try TestImages.delays(of: made.bytes) == delays)
  }

  @Test(arguments: [0, 1, 3])
  func `the loop count is kept`(loop: Int) throws {
    // given
    let gif = try TestImages.gif(width: 20, height: 10, frames: 2, loop: loop)
    let webp = try TestImages.animatedWebP(width: 20, height: 10, frames: 2, loop: loop)
    #expect(try TestImages.loop(of: gif) == loop)
    #expect(try TestImages.loop(of: webp) == loop)
    // when, then
    for source in [gif, webp] {
      for format in [nil, ImageFormat.webp] {
        #expect(try TestImages.loop(of: try Made(source) { $0.format = format }.bytes) == loop)
      }
    }
  }

  @Test(arguments: [ImageFormat?.none, .gif, .webp])
  func `a still image is rendered from an animation on request`(format: ImageFormat?) throws {
    for source in [
      try TestImages.gif(width: 40, height: 20, frames: 3),
      try TestImages.animatedWebP(width: 40, height: 20, frames: 3),
    ] {
      let made = try Made(source, format: format) { $0.isAnimated = false }
      #expect(made.frames == 1 && made.format != .gif || format == .gif)
      #expect(isClose(try made.pixels().rgb(x: 20, y: 10), to: TestImages.frameColor(0)))
      // Other frames are still selected by number.
      let other = try Made(source, format: format, frame: 2) { $0.isAnimated = false }
      #expect(isClose(try other.pixels().rgb(x: 20, y: 10), to: TestImages.frameColor(2)))
    }
  }

  @Test(arguments: [ImageFormat.jpeg, .png, .avif, .jxl, .tiff])
  func `a format without animation gets the first frame`(format: ImageFormat) throws {
    let source = try TestImages.gif(width: 40, height: 20, frames: 3)
    let made = try Made(source) { $0.format = format }
    #expect(made.frames == 1 && made.size == PixelSize(width: 40, height: 20))
    #expect(isClose(try made.pixels().rgb(x: 20, y: 10), to: TestImages.frameColor(0)))
  }

  @Test(arguments: 0..<4)
  func `a single frame can be selected`(frame: Int) throws {
    for source in [
      try TestImages.gif(width: 40, height: 20, frames: 4),
      try TestImages.animatedWebP(width: 40, height: 20, frames: 4),
    ] {
      let made = try Made(source, width: 10, frame: frame)
      #expect(made.frames == 1 && made.size == PixelSize(width: 10, height: 5))
      #expect(made.format != .gif)
      #expect(isClose(try made.pixels().rgb(x: 5, y: 2), to: TestImages.frameColor(frame)))
      // A requested animation format gives a still.
      let still = try Made(source, format: .gif, frame: frame)
      #expect(isClose(try still.pixels().rgb(x: 20, y: 10), to: TestImages.frameColor(frame)))
      #expect(still.frames == 1)
    }
  }

  @Test func `a missing frame is refused with the number of frames`() throws {
    let animation = try TestImages.gif(width: 40, height: 20, frames: 4)
    let still = try TestImages.jpeg(width: 40, height: 20)
    #expect(
      Made.error(animation) { $0.frame = 4 }
        == .invalidParameter(name: "frame", value: "4", allowed: "the source has 4 frames, 0 to 3"))
    #expect(
      Made.error(still) { $0.frame = 1 }
        == .invalidParameter(name: "frame", value: "1", allowed: "the source has one frame, 0"))
    #expect(try Made(still) { $0.frame = 0 }.size == PixelSize(width: 40, height: 20))
  }

  @Test(arguments: [Fit.cover, .contain, .fill, .outside])
  func `each fit applies to every frame`(fit: Fit) throws {
    // given
    let source = try TestImages.gif(width: 80, height: 40, frames: 3)
    let wanted =
      fit == .outside ? PixelSize(width: 40, height: 20) : PixelSize(width: 20, height: 20)
    // when
    let made = try Made(source, width: 20, height: 20, fit: fit)
    // then
    #expect(made.frames == 3 && made.size == wanted)
    for frame in 0..<3 {
      let pixels = try made.pixels(frame: frame)
      #expect(pixels.size == wanted)
      #expect(isClose(pixels.rgb(x: 10, y: 10), to: TestImages.frameColor(frame)))
      #expect(
        isClose(
          pixels.rgb(x: 10, y: 0),
          to: fit == .contain ? [255, 255, 255] : TestImages.frameColor(frame)))
    }
  }

  @Test func `many frames larger than the decoder's strips are decoded in order`() throws {
    let source = try TestImages.gif(width: 120, height: 700, frames: 12)
    let made = try Made(source) { $0.height = 350 }
    #expect(made.frames == 12)
    #expect(try isPlain(made, frames: 12))
  }

  @Test func `an animation above the frame limit is refused, even for one frame`() throws {
    // given
    let source = try TestImages.gif(width: 8, height: 8, frames: 6)
    var limits = ImagingLimits()
    limits.maximumFrames = 5
    // when, then
    #expect(Made.error(source, limits: limits) == .tooManyFrames(frames: 6, limit: 5))
    #expect(
      Made.error(source, limits: limits) { $0.frame = 0 } == .tooManyFrames(frames: 6, limit: 5))
    limits.maximumFrames = 6
    #expect(Made.error(source, limits: limits) == nil)
  }

  @Test func `the pixels of all frames count against the limit`() throws {
    let source = try TestImages.gif(width: 10, height: 10, frames: 6)
    let limits = ImagingLimits { $0.maximumPixels = 599 }
    #expect(Made.error(source, limits: limits) == .tooManyPixels(pixels: 600, limit: 599))
  }

  @Test func `transparent frames stay transparent`() throws {
    // given
    let frames = (0..<3).map { frame in
      Pixels(width: 40, height: 40, bands: 4) { x, _ in
        x < 20 ? TestImages.frameColor(frame) + [255] : [0, 0, 0, 0]
      }
    }
    // when
    let made = try Made(try TestImages.animation(frames, as: ".gif[dither=0]")) { $0.width = 20 }
    // then
    for frame in 0..<3 {
      let pixels = try made.pixels(frame: frame)
      #expect(pixels[17, 10][3] == 0 && pixels[3, 10][3] == 255)
    }
  }

  private static let scene = Pixels.scene(width: 48, height: 32)

  /// A PNG of 8 × 6 pixels, and two more frames than that image.
  private static let animatedPNG: [UInt8] = {
    var png = CodedPNG(
      size: PixelSize(width: 8, height: 6), colorType: 0, depth: 8,
      samples: [Int](repeating: 90, count: 48))
    let control = ("fcTL", [UInt8](repeating: 0, count: 26))
    png.before = [("acTL", HEIFBoxes.number(3, width: 4) + [0, 0, 0, 0]), control]
    png.after = [control, ("fdAT", [0, 0, 0, 2]), control, ("fdAT", [0, 0, 0, 4])]
    return png.bytes
  }()

  private static func animations() throws -> [(source: [UInt8], frames: Int)] {
    let avif = try TestImages.heif(scene, isAVIF: true)
    let heic = try TestImages.heif(scene, isAVIF: false)
    return [
      (animatedPNG, 3),
      (try HEIFSequence().file(of: avif, size: scene.size), 5),
      (try HEIFSequence { $0.isAVIF = false }.file(of: heic, size: scene.size), 5),
      // A number without sizes does not count.
      (try HEIFSequence { $0.statedFrames = 1 << 31 }.file(of: avif, size: scene.size), 5),
      (try TestImages.jxl(scene, frames: 4), 4),
    ]
  }

  @Test func `of an animation that is not decoded the frames are told, and that one is kept`()
    throws
  {
    for (source, frames) in try Self.animations() {
      let info = try SourceInfo(source)
      #expect((info.frames, info.frames_kept) == (frames, 1), "\(info.format)")
      for format in [nil, ImageFormat.png, .webp] {
        let made = try Made(source) { $0.format = format }
        #expect((made.frames, made.droppedFrames) == (1, frames - 1), "\(info.format)")
      }
    }
  }

  @Test func `of an animated JPEG XL the first frame is shown, before libvips 8.16 the last`()
    throws
  {
    // Each frame is the negative of the one before.
    let negative = Self.scene.values.map { 255 - $0 }
    for frames in 1...4 {
      let made = try Made(try TestImages.jxl(Self.scene, frames: frames)) { $0.format = .png }
      let isNegative = frames.isMultiple(of: 2) && vips_version(1) < 16
      #expect(try made.pixels().values == (isNegative ? negative : Self.scene.values))
    }
  }

  @Test func `an animation loses no frame in a format that holds them, and all but one in others`()
    throws
  {
    let gif = try TestImages.gif(width: 20, height: 10, frames: 3)
    #expect(try SourceInfo(gif).frames_kept == nil)
    #expect(try Made(gif) { $0.format = .webp }.droppedFrames == 0)
    #expect(try Made(gif) { $0.format = .jpeg }.droppedFrames == 2)
  }

  @Test func `who asks for one frame loses none`() throws {
    for source in [Self.animatedPNG, try TestImages.gif(width: 20, height: 10, frames: 3)] {
      #expect(try Made(source) { $0.isAnimated = false }.droppedFrames == 0)
      #expect(try Made(source) { $0.frame = 0 }.droppedFrames == 0)
    }
    #expect(
      Made.error(Self.animatedPNG) { $0.frame = 1 }
        == .invalidParameter(
          name: "frame", value: "1", allowed: "one frame alone is decoded, 0"))
  }

  @Test func `stills lose nothing`() throws {
    for source in [
      try TestImages.png(width: 9, height: 6), try TestImages.jxl(Self.scene),
      try TestImages.avif(width: 20, height: 10),
    ] {
      #expect(try Made(source).droppedFrames == 0)
      let info = try SourceInfo(source)
      #expect((info.frames, info.frames_kept) == (1, nil))
    }
  }

  @Test func `a delay that a GIF cannot hold is its longest`() throws {
    let webp = try TestImages.animatedWebP(
      width: 20, height: 10, frames: 3, delays: [50, 655_360, 16_777_215])
    let gif = try Made(webp) { $0.format = .gif }
    #expect(try TestImages.delays(of: gif.bytes) == [50, 655_350, 655_350])
    let kept = try Made(webp) { $0.format = .webp }
    #expect(try TestImages.delays(of: kept.bytes) == [50, 655_360, 16_777_215])
  }
}
