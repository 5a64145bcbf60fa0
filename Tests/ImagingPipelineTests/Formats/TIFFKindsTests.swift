// TIFFKindsTests: TIFFs in strips and tiles, of every compression and number format.

import Model
import TestSupport
import Testing

@Suite(.onOwnThreads) struct TIFFKindsTests {
  private static let scene = Pixels.scene(width: 150, height: 90)

  private func decoded(_ tiff: [UInt8]) throws -> Pixels {
    try Made(tiff) { $0.format = .png }.pixels()
  }

  @Test(
    arguments: [
      "none", "lzw", "deflate", "packbits", "lzw,predictor=horizontal",
      "deflate,predictor=horizontal", "zstd", "jpeg,Q=95", "webp,lossless",
    ], ["", ",tile,tile-width=64,tile-height=64", ",bigtiff", ",pyramid,tile"])
  func `strips and tiles of every compression are decoded`(compression: String, layout: String)
    throws
  {
    let tiff = try TestImages.encode(Self.scene, as: ".tif[compression=\(compression)\(layout)]")
    #expect(try decoded(tiff).psnr(to: Self.scene) > (compression.hasPrefix("jpeg") ? 32 : 90))
  }

  @Test func `bilevel TIFFs are decoded, including fax compression`() throws {
    let drawing = Pixels(width: 64, height: 40, bands: 1) { x, y in
      [(x / 9 + y / 7).isMultiple(of: 2) ? 0 : 255]
    }
    for compression in ["none", "packbits", "ccittfax4", "lzw,predictor=none"] {
      for more in ["", ",miniswhite"] {
        let tiff = try TestImages.encode(
          drawing, as: ".tif[bitdepth=1,compression=\(compression)\(more)]")
        #expect(try decoded(tiff).values == drawing.values, "\(compression)\(more)")
      }
    }
  }

  @Test(arguments: [2, 4])
  func `greys of 2 and 4 bits are decoded`(depth: Int) throws {
    let steps = Pixels(width: 64, height: 40, bands: 1) { x, _ in [UInt8(x / 16 * 85)] }
    let tiff = try TestImages.encode(steps, as: ".tif[bitdepth=\(depth)]")
    #expect(try decoded(tiff).values == steps.values)
  }

  @Test func `16 bits, alpha and CMYK are decoded`() throws {
    let wide = try TestImages.encode(Self.scene, as: ".tif[compression=lzw]", sixteenBits: true)
    #expect(try decoded(wide).psnr(to: Self.scene) > 50)
    let alpha = Pixels.scene(width: 60, height: 40, alpha: true)
    let made = try Made(try TestImages.encode(alpha, as: ".tif[compression=deflate]"))
    #expect(made.format == .png)
    #expect(isClose(try made.pixels()[50, 30], to: alpha[50, 30], within: 1))
    let cyan = try decoded(
      try TestImages.cmyk(Pixels(width: 40, height: 40, color: [255, 0, 0, 0]), as: ".tif"))
    #expect(cyan.bands == 3 && cyan.rgb(x: 9, y: 9)[0] < 80 && cyan.rgb(x: 9, y: 9)[2] > 180)
  }

  @Test func `the first of several pages is rendered by default, and others on request`() throws {
    // given
    let pages = (0..<3).map { Pixels(width: 40, height: 30, color: TestImages.frameColor($0)) }
    let tiff = try TestImages.animation(pages, as: ".tif")
    // when, then
    let made = try Made(tiff)
    #expect(made.frames == 1 && made.size == PixelSize(width: 40, height: 30))
    #expect(isClose(try made.pixels().rgb(x: 20, y: 15), to: TestImages.frameColor(0), within: 4))
    let last = try Made(tiff) {
      $0.frame = 2
      $0.format = .png
    }
    #expect(isClose(try last.pixels().rgb(x: 20, y: 15), to: TestImages.frameColor(2), within: 1))
  }
}
