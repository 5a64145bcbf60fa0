// JPEGKindsTests: JPEGs of every colour model, sampling and coding, and unsupported ones.

import Model
import TestSupport
import Testing

@Suite(.onOwnThreads) struct JPEGKindsTests {
  private static let scene = Pixels.scene(width: 97, height: 65)
  private static let grey = Pixels(width: 97, height: 65, bands: 1) { x, y in
    [scene.rgb(x: x, y: y)[0]]
  }

  /// Decodes without further loss.
  private func decoded(_ jpeg: [UInt8]) throws -> Pixels {
    try Made(jpeg) { $0.format = .png }.pixels()
  }

  @Test(arguments: [(1, 1), (2, 1), (2, 2), (1, 2), (4, 1)], [false, true])
  func `every chroma subsampling is decoded`(
    sampling: (Int, Int), progressive: Bool
  ) throws {
    let jpeg = try TestImages.jpeg(
      Self.scene, as: .ycc, sampling: sampling, progressive: progressive)
    // Subsampling mixes colours at the edges of the scene's blocks.
    #expect(try decoded(jpeg).psnr(to: Self.scene) > (sampling == (1, 1) ? 40 : 26))
    let small = try Made(jpeg, width: 24, format: .png).pixels()
    #expect(isClose(small.corners[1], to: [30, 200, 40]))
  }

  @Test(arguments: [false, true])
  func `grey and RGB JPEGs are decoded unchanged`(progressive: Bool) throws {
    let grey = try decoded(try TestImages.jpeg(Self.grey, as: .grey, progressive: progressive))
    #expect(grey.bands == 1 && grey.psnr(to: Self.grey) > 40)
    let rgb = try decoded(try TestImages.jpeg(Self.scene, as: .rgb, progressive: progressive))
    #expect(rgb.psnr(to: Self.scene) > 40)
  }

  @Test func `an arithmetically coded JPEG is decoded`() throws {
    for progressive in [false, true] {
      let jpeg = try TestImages.jpeg(
        Self.scene, as: .ycc, progressive: progressive, arithmetic: true)
      #expect(try decoded(jpeg).psnr(to: Self.scene) > 40)
    }
  }

  @Test(arguments: [false, true])
  func `YCCK and CMYK decode to the same inks`(progressive: Bool) throws {
    // given: blocks of inks, compared with the output of libvips's encoder
    let inks = Pixels(width: 64, height: 48, bands: 4) { x, y in
      x < 32
        ? (y < 24 ? [255, 0, 0, 0] : [0, 255, 0, 20])
        : (y < 24 ? [0, 0, 255, 0] : [40, 30, 20, 200])
    }
    let libvips = try decoded(try TestImages.cmyk(inks, as: ".jpg[Q=100,strip]"))
    // when
    let cmyk = try decoded(try TestImages.jpeg(inks, as: .cmyk, progressive: progressive))
    let ycck = try decoded(try TestImages.jpeg(inks, as: .ycck, progressive: progressive))
    let thin = try decoded(
      try TestImages.jpeg(inks, as: .ycck, sampling: (2, 2), progressive: progressive))
    let small = try TestImages.jpeg(inks, as: .cmyk, progressive: progressive)
    #expect(Made.error(small, width: 16) == nil)
    // then: three bands, not inverted
    #expect(cmyk.bands == 3 && ycck.bands == 3)
    #expect(cmyk.psnr(to: libvips) > 35 && ycck.psnr(to: cmyk) > 35)
    #expect(thin.corners.indices.allSatisfy { isClose(thin.corners[$0], to: cmyk.corners[$0]) })
    #expect(cmyk.corners[0][0] < 80 && cmyk.corners[2][1] < 80 && cmyk.corners[1][2] < 100)
  }

  @Test
  func `a JPEG kind that libjpeg cannot decode is unsupported_format with the reason in the log`()
    throws
  {
    // given: a changed marker and precision of the frame header, which follows the tables
    let whole = try TestImages.jpeg(Self.scene, as: .ycc)
    let frame = try #require(whole.indices.first { whole[$0...].starts(with: [0xff, 0xc0]) })
    func refused(as marker: UInt8, precision: UInt8) -> ImageError? {
      var bytes = whole
      bytes[frame + 1] = marker
      bytes[frame + 4] = precision
      return Made.error(bytes)
    }
    // when, then
    for marker: UInt8 in [0xc0, 0xc1, 0xc2] {
      #expect(
        refused(as: marker, precision: 12)
          == .unsupportedFormat(detail: "a JPEG of 12 bits a sample; 8 are decoded"))
    }
    #expect(refused(as: 0xc3, precision: 8) == .unsupportedFormat(detail: "a lossless JPEG"))
    #expect(refused(as: 0xc5, precision: 8) == .unsupportedFormat(detail: "a hierarchical JPEG"))
    // A damaged file of a supported kind stays undecodable.
    #expect(Made.isUndecodable(Array(whole.prefix(frame + 6))))
  }
}
