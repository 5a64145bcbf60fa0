// NewerJPEGTests: JPEG XL and JPEG 2000 of every band count, depth and rotation.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) struct NewerJPEGTests {
  private static let scene = Pixels.scene(width: 90, height: 60)
  private static let alpha = Pixels.scene(width: 90, height: 60, alpha: true)
  private static let grey = Pixels(width: 90, height: 60, bands: 1) { x, y in [UInt8(x + 2 * y)] }
  private static let greyAlpha = Pixels(width: 90, height: 60, bands: 2) { x, y in
    [UInt8(x + y), x < 45 ? 255 : 128]
  }

  private func decoded(_ bytes: [UInt8]) throws -> Pixels {
    try Made(bytes) { $0.format = .png }.pixels()
  }

  /// Returns whether all bands agree to within a step or two.
  private func isSame(_ left: Pixels, as right: Pixels) -> Bool {
    left.bands == right.bands && isClose(left.values, to: right.values, within: 2)
  }

  @Test func `a JPEG XL with any number of bands is decoded unchanged`() throws {
    for pixels in [Self.scene, Self.alpha, Self.grey, Self.greyAlpha] {
      let made = try Made(try TestImages.jxl(pixels))
      #expect(made.format == (pixels.bands.isMultiple(of: 2) ? .png : .jpeg))
      let decoded = try decoded(try TestImages.jxl(pixels))
      #expect(isSame(decoded, as: pixels), "\(pixels.bands)")
    }
  }

  @Test func `a 16-bit JPEG XL is reduced to 8 bits`() throws {
    for pixels in [Self.scene, Self.grey] {
      let decoded = try decoded(try TestImages.jxl(pixels, sixteenBits: true))
      #expect(isSame(decoded, as: pixels), "\(pixels.bands)")
    }
  }

  @Test func `a lossy JPEG XL without a container is decoded`() throws {
    let bytes = try TestImages.encode(Self.scene, as: ".jxl[Q=95,effort=3,strip]")
    #expect(bytes.starts(with: [0xff, 0x0a]))
    #expect(try decoded(bytes).psnr(to: Self.scene) > 32)
    let small = try Made(bytes) { $0.width = 30 }
    #expect(small.size == PixelSize(width: 30, height: 20))
  }

  @Test(arguments: 1...8)
  func `a JPEG XL is rotated by its codestream, not by Exif`(tag: Int) throws {
    for exif in [nil, 6] {
      let bytes = try TestImages.jxl(
        Self.scene.stored(forOrientation: tag), orientation: tag, exifOrientation: exif)
      #expect(isSame(try decoded(bytes), as: Self.scene))
    }
  }

  @Test(arguments: [3, 6])
  func `a JPEG XL of photo size is rotated`(tag: Int) throws {
    let photo = Pixels.scene(width: 150, height: 100).stored(forOrientation: tag).zoomed(by: 8)
    let made = try Made(try TestImages.jxl(photo, orientation: tag)) { $0.width = 300 }
    #expect(try made.pixels().psnr(to: .scene(width: 300, height: 200)) > 30)
  }

  @Test(arguments: [
    "lossless", "lossless,tile-width=32,tile-height=32", "Q=60", "Q=60,subsample-mode=on",
  ])
  func `a JPEG 2000 is decoded in tiles, lossy and lossless`(options: String) throws {
    let bytes = try TestImages.encode(Self.scene, as: ".jp2[\(options)]")
    #expect(try decoded(bytes).psnr(to: Self.scene) > (options.hasPrefix("lossless") ? 90 : 26))
  }

  @Test func `a JPEG 2000 with any number of bands or 16 bits is decoded`() throws {
    for pixels in [Self.scene, Self.alpha, Self.grey, Self.greyAlpha] {
      let bytes = try TestImages.encode(pixels, as: ".jp2[lossless]")
      #expect(isSame(try decoded(bytes), as: pixels), "\(pixels.bands)")
    }
    let wide = try TestImages.encode(Self.scene, as: ".jp2[lossless]", sixteenBits: true)
    #expect(isSame(try decoded(wide), as: Self.scene))
  }

  @Test func `an oversized JPEG 2000 is refused by its header`() throws {
    // given: SIZ has width and height after its marker, length and profile (ISO/IEC 15444-1, A.5.1)
    var bytes = try TestImages.encode(Self.scene, as: ".jp2[lossless]")
    let size = try #require(
      bytes.indices.first { bytes[$0...].starts(with: [0xff, 0x4f, 0xff, 0x51]) })
    bytes.replaceSubrange(size + 8..<size + 16, with: [0, 0, 0xc3, 0x50, 0, 0, 0xc3, 0x50])
    let codestream = Array(bytes[size...])
    #expect(
      Made.error(codestream) == .tooManyPixels(pixels: 2_500_000_000, limit: 150_000_000))
  }
}
