// OrientationTests: the eight EXIF orientations on images larger than a decoder's buffer.

import Model
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct OrientationTests {
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
