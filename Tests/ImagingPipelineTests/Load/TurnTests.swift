// TurnTests: the eight EXIF orientations, and requested rotations and flips after them.

import Core
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

  private static let small = Pixels.scene(width: 300, height: 200)

  @Test(arguments: 1...8)
  func `a rotated photo is rendered upright and without the tag`(tag: Int) throws {
    // given
    let photo = try TestImages.jpeg(width: 1800, height: 1200, orientation: tag)
    // when
    let whole = try Made(photo)
    let small = try Made(photo) { $0.width = 300 }
    // then
    #expect(whole.size == PixelSize(width: 1800, height: 1200))
    #expect(small.size == PixelSize(width: 300, height: 200))
    #expect(try small.pixels().psnr(to: Self.small) > 30)
    #expect(isClose(try whole.pixels().corners[1], to: [30, 200, 40]))
    #expect(!whole.bytes.contains("Exif"))
  }

  @Test(arguments: 1...8)
  func `a crop applies to the upright image`(tag: Int) throws {
    // given
    let photo = try TestImages.jpeg(width: 1200, height: 800, orientation: tag)
    // when: the left third, 100 of 300 columns
    let left = try Made(photo, width: 100, height: 200, fit: .cover) { $0.position = .left }
    // then
    #expect(left.size == PixelSize(width: 100, height: 200))
    #expect(
      try left.pixels().psnr(to: Self.small.cut(x: 0, y: 0, width: 100, height: 200)) > 28)
  }

  @Test(arguments: 1...8)
  func `unequal stretching applies to the upright image`(tag: Int) throws {
    let photo = try TestImages.jpeg(width: 600, height: 400, orientation: tag)
    let stretched = try Made(photo, width: 300, height: 50, fit: .fill)
    #expect(try stretched.pixels().psnr(to: .scene(width: 300, height: 50)) > 28)
  }

  @Test(arguments: [(0, 1), (9, 1), (-1, 1), (1, 1), (6, 6), (nil, 1)])
  func `an unknown orientation counts as upright`(tag: Int?, expected: Int) {
    #expect(Orientation(tag: tag).tag == expected)
  }

  @Test(arguments: 1...8, [".webp[effort=0]", ".tif", ".png[compression=1]"])
  func `other formats are rotated by their orientation as well`(tag: Int, suffix: String) throws {
    // given: each pixel of a small scene enlarged 12 times, 1800 by 1200 in all
    let stored = Pixels.scene(width: 150, height: 100).stored(forOrientation: tag)
    var photo = try TestImages.encode(stored, as: suffix, zoom: 12, orientation: tag)
    if suffix.hasPrefix(".png") { photo = CodedPNG.adding(orientation: tag, to: photo) }
    // when
    let made = try Made(photo, width: 300, format: .png)
    // then
    #expect(made.size == PixelSize(width: 300, height: 200))
    #expect(try made.pixels().psnr(to: Self.small) > 28)
    #expect(!made.bytes.contains("eXIf"))
  }
}

extension [UInt8] {
  /// Returns whether a text occurs in these bytes.
  func contains(_ text: String) -> Bool {
    let wanted = Array(text.utf8)
    return indices.contains { self[$0...].starts(with: wanted) }
  }
}
