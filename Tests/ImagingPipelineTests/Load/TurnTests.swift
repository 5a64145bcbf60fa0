// TurnTests: requested rotations and flips, applied after the EXIF orientation.

import Model
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct TurnTests {
  private static let flips: [Flip] = [.none, .horizontal, .vertical, .both]

  @Test(arguments: 1...8)
  func `a rotation applies on top of any EXIF orientation`(tag: Int) throws {
    // given
    let upright = Pixels.textured(width: 31, height: 20)
    let source = try TestImages.encode(
      upright.stored(forOrientation: tag), as: ".webp[lossless]", orientation: tag)
    for rotation in Rotation.allCases {
      for flip in Self.flips {
        // when
        let made = try Made(source) {
          $0.rotation = rotation
          $0.flip = flip
          $0.format = .png
        }
        // then
        let expected = upright.turned(by: rotation, flip: flip)
        #expect(try made.pixels().values == expected.values, "\(rotation) \(flip)")
      }
    }
  }

  @Test func `a large photo is rotated after its reduction, with sizes of the upright image`()
    throws
  {
    let photo = try TestImages.jpeg(width: 1800, height: 1200, orientation: 6)
    let made = try Made(photo) {
      $0.rotation = .quarter
      $0.flip = .horizontal
      $0.height = 300
    }
    #expect(made.size == PixelSize(width: 200, height: 300))
    let expected = Pixels.scene(width: 300, height: 200).turned(by: .quarter, flip: .horizontal)
    #expect(try made.pixels().psnr(to: expected) > 30)
  }

  @Test func `each frame of an animation is rotated`() throws {
    let frames = (0..<3).map { frame in
      Pixels(width: 24, height: 16) { x, y in
        x < 6 && y < 6 ? [255, 255, 255] : TestImages.frameColor(frame)
      }
    }
    let source = try TestImages.animation(
      frames, delays: [40, 60, 80], loop: 2, as: ".gif[dither=0]")
    let made = try Made(source) {
      $0.rotation = .quarter
      $0.flip = .vertical
    }
    #expect(made.frames == 3 && made.size == PixelSize(width: 16, height: 24))
    for frame in 0..<3 {
      let expected = frames[frame].turned(by: .quarter, flip: .vertical)
      #expect(try made.pixels(frame: frame).meanDifference(to: expected) < 3)
    }
    #expect(try TestImages.delays(of: made.bytes) == [40, 60, 80])
    #expect(try TestImages.loop(of: made.bytes) == 2)
  }
}
