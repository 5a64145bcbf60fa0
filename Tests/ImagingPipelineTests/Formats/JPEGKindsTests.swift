// JPEGKindsTests: JPEGs of every colour model, sampling and coding, whole and at a part of their
// size, and unsupported ones.

import Core
import Glibc
import TestSupport
import Testing

@testable import ImagingPipeline

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

  /// How a JPEG is stored, which decides who decodes it.
  enum Kind: CaseIterable {
    case baseline, subsampled, grey, progressive, restarts, arithmetic
  }

  /// Sides that eight divides, and others: their last pixels are not whole ones.
  private static let sizes = [
    PixelSize(width: 400, height: 264), PixelSize(width: 401, height: 265),
    PixelSize(width: 403, height: 269), PixelSize(width: 407, height: 271),
    PixelSize(width: 265, height: 403),
  ]

  @Test(arguments: Kind.allCases, sizes)
  func `a reduced JPEG is like the same pixels as PNG, at every scale of the decoder`(
    kind: Kind, size: PixelSize
  ) throws {
    // given: waves as long as a decoder's smallest scale can show
    let pixels = Pixels(width: size.width, height: size.height, bands: kind == .grey ? 1 : 3) {
      x, y in
      let wave = sin(Double(x) / 5) * sin(Double(y) / 5)
      return [UInt8](repeating: UInt8(128 + 100 * wave), count: kind == .grey ? 1 : 3)
    }
    let source = try TestImages.jpeg(
      pixels, as: kind == .grey ? .grey : .ycc,
      sampling: kind == .subsampled ? (across: 2, down: 2) : (across: 1, down: 1),
      progressive: kind == .progressive, arithmetic: kind == .arithmetic,
      restartInterval: kind == .restarts ? 7 : 0)
    let png = try TestImages.encode(try Pixels(decoding: source), as: ".png")
    for eighths in [0.75, 1.0, 1.6, 2, 2.4, 3, 3.5, 4, 4.5] {
      let width = Int(Double(size.width) * eighths / 8)
      // when
      let made = try Made(source, width: width, format: .png)
      // then
      let expected = try Made(png, width: width, format: .png)
      #expect(made.size == expected.size)
      let likeness = try made.pixels().psnr(to: expected.pixels())
      #expect(likeness > (eighths < 2 ? 24 : 32), "\(eighths) eighths")
    }
  }
}
