// JPEGShrinkTests: a JPEG decoded at a part of its size shows the same as one decoded whole.

import Glibc
import Model
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct JPEGShrinkTests {
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
    for eighths in [1.0, 1.6, 2, 2.4, 3, 3.5, 4, 4.5] {
      let width = Int(Double(size.width) * eighths / 8)
      // when
      let made = try Made(source) {
        $0.width = width
        $0.format = .png
      }
      // then
      let expected = try Made(png) {
        $0.width = width
        $0.format = .png
      }
      #expect(made.size == expected.size)
      let likeness = try made.pixels().psnr(to: expected.pixels())
      #expect(likeness > (eighths < 2 ? 24 : 32), "\(eighths) eighths")
    }
  }
}
