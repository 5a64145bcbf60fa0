// DroppedFramesTests: answers and descriptions tell of animations that lose frames.

import ImagingWire
import Model
import TestSupport
import Testing

@Suite(.onOwnThreads) struct DroppedFramesTests {
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

  @Test func `of an animated JPEG XL the last frame is shown`() throws {
    // Each frame is the negative of the one before.
    let negative = Self.scene.values.map { 255 - $0 }
    for frames in 1...4 {
      let made = try Made(try TestImages.jxl(Self.scene, frames: frames)) { $0.format = .png }
      let isNegative = frames.isMultiple(of: 2)
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
