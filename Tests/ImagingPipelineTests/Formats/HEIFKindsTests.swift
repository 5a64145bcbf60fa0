// HEIFKindsTests: primary image, rotation and depth of HEIC and AVIF.

import Model
import TestSupport
import Testing

@Suite(.onOwnThreads) struct HEIFKindsTests {
  private static let scene = Pixels.scene(width: 144, height: 96)

  private func decoded(_ heif: [UInt8]) throws -> Pixels {
    try Made(heif) { $0.format = .png }.pixels()
  }

  @Test(arguments: 1...8, [false, true])
  func `the container's rotation applies once, and Exif is ignored`(tag: Int, isAVIF: Bool) throws {
    for exif in [nil, tag, 6] {
      let heif = try TestImages.heif(
        Self.scene.stored(forOrientation: tag), isAVIF: isAVIF, orientation: tag,
        exifOrientation: exif)
      let pixels = try decoded(heif)
      #expect(pixels.psnr(to: Self.scene) > 28, "Exif \(exif ?? 0)")
    }
  }

  @Test(arguments: [false, true])
  func `a photo rotated by its container is rendered upright`(isAVIF: Bool) throws {
    // given
    let photo = Pixels.scene(width: 150, height: 100).stored(forOrientation: 6).zoomed(by: 6)
    let heif = try TestImages.heif(photo, isAVIF: isAVIF, orientation: 6, exifOrientation: 6)
    // when
    let made = try Made(heif) { $0.width = 300 }
    // then
    #expect(made.size == PixelSize(width: 300, height: 200))
    #expect(try made.pixels().psnr(to: .scene(width: 300, height: 200)) > 28)
  }

  @Test(arguments: [false, true])
  func `the primary of several images is rendered`(isAVIF: Bool) throws {
    let heif = try TestImages.heif(Self.scene, isAVIF: isAVIF, hasCover: true)
    #expect(try decoded(heif).psnr(to: Self.scene) > 28)
  }

  @Test(arguments: [8, 10, 12])
  func `an AVIF of 8, 10 or 12 bits is decoded`(depth: Int) throws {
    let avif = try TestImages.heif(Self.scene, isAVIF: true, bits: depth)
    let made = try Made(avif) {
      $0.format = .png
      $0.width = 72
    }
    #expect(try made.pixels().psnr(to: .scene(width: 72, height: 48)) > 28)
  }
}
