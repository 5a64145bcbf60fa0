// TurnTests: requested rotations and flips, applied after the EXIF orientation.

import Model
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct TurnTests {
  private static let flips: [Flip] = [.none, .horizontal, .vertical, .both]

  @Test(arguments: Rotation.allCases, flips)
  func `an image is turned clockwise and then mirrored`(rotation: Rotation, flip: Flip) throws {
    let scene = Pixels.textured(width: 31, height: 20)
    let made = try Made(try TestImages.encode(scene, ".png")) {
      ($0.rotation, $0.flip, $0.format) = (rotation, flip, .png)
    }
    #expect(try made.pixels().values == scene.turned(rotation, flip).values)
    #expect(made.size == scene.turned(rotation, flip).size)
  }

  @Test(arguments: 1...8)
  func `a turn comes on top of the EXIF orientation, whatever that is`(tag: Int) throws {
    // given
    let upright = Pixels.textured(width: 31, height: 20)
    let source = try TestImages.encode(
      upright.stored(forOrientation: tag), ".webp[lossless]", orientation: tag)
    for rotation in Rotation.allCases {
      for flip in Self.flips {
        // when
        let made = try Made(source) {
          ($0.rotation, $0.flip, $0.format) = (rotation, flip, .png)
        }
        // then
        let expected = upright.turned(rotation, flip)
        #expect(try made.pixels().values == expected.values, "\(rotation) \(flip)")
      }
    }
  }

  @Test(arguments: 1...8)
  func `a part of the image as seen is found in the stored one, and back`(tag: Int) {
    // given
    let upright = Pixels.textured(width: 17, height: 12)
    let stored = upright.stored(forOrientation: tag)
    let area = PixelArea(x: 3, y: 1, size: PixelSize(width: 9, height: 4))
    // when
    let found = Orientation(tag: tag).stored(area, of: upright.size)
    // then
    let cut = stored.cut(x: found.x, y: found.y, width: found.size.width, height: found.size.height)
    #expect(
      cut.values == upright.cut(x: 3, y: 1, width: 9, height: 4).stored(forOrientation: tag).values)
    #expect(Orientation(tag: tag).upright(found, of: stored.size) == area)
  }

  @Test func `a large photo is turned on the small image, sizes counting as seen`() throws {
    let photo = try TestImages.jpeg(width: 1800, height: 1200, orientation: 6)
    let made = try Made(photo) { ($0.rotation, $0.flip, $0.height) = (.quarter, .horizontal, 300) }
    #expect(made.size == PixelSize(width: 200, height: 300))
    let expected = Pixels.scene(width: 300, height: 200).turned(.quarter, .horizontal)
    #expect(try made.pixels().psnr(to: expected) > 30)
  }

  @Test func `each frame of an animation is turned`() throws {
    let frames = (0..<3).map { frame in
      Pixels(width: 24, height: 16) { x, y in
        x < 6 && y < 6 ? [255, 255, 255] : TestImages.frameColor(frame)
      }
    }
    let source = try TestImages.animation(
      frames, delays: [40, 60, 80], loop: 2, as: ".gif[dither=0]")
    let made = try Made(source) { ($0.rotation, $0.flip) = (.quarter, .vertical) }
    #expect(made.frames == 3 && made.size == PixelSize(width: 16, height: 24))
    for frame in 0..<3 {
      let expected = frames[frame].turned(.quarter, .vertical)
      #expect(try made.pixels(frame: frame).meanDifference(to: expected) < 3)
    }
    #expect(try TestImages.delays(of: made.bytes) == [40, 60, 80])
    #expect(try TestImages.loop(of: made.bytes) == 2)
  }
}
