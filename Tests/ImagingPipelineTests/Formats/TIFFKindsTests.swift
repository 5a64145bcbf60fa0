// TIFFKindsTests: TIFFs in strips and tiles, of every compression and number format.

import Core
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

  @Test(arguments: [1, 3, 4])
  func `without effort, the pixels lie between header and directory`(bands: Int) throws {
    let scene = Pixels(width: 31, height: 7, bands: bands) { x, y in
      Array([UInt8(x * 8), UInt8(y * 30), 200, 255].suffix(bands))
    }
    let limits = ImagingLimits { $0.efforts.png = 0 }
    let made = try Made(try TestImages.encode(scene, as: ".png"), limits: limits) {
      $0.output.format = .tiff
      $0.output.flattens = true
    }
    let kept = min(bands, 3)
    let end = made.bytes[4..<8].reversed().reduce(0) { $0 << 8 | Int($1) }
    #expect(end - 8 - 31 * 7 * kept == kept % 2)
    #expect(made.bytes[8..<8 + kept] == scene.values[0..<kept])
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

  private func code(_ change: (inout TiledTIFF) -> Void) -> String? {
    var tiff = TiledTIFF(tile: [])
    change(&tiff)
    if tiff.tile.isEmpty {
      let samples = tiff.planes == 2 ? 1 : tiff.samples
      tiff.tile = (0..<32 * 32 * samples * tiff.bits / 8).map { UInt8($0 & 63) }
    }
    return Made.error(tiff.bytes)?.code
  }

  @Test func `samples that are decoded wrong are refused, others decoded`() {
    for (bits, format) in [(8, nil), (8, 1), (8, 4), (16, 1), (32, 3)] as [(Int, Int?)] {
      #expect(code { ($0.bits, $0.format) = (bits, format) } == nil, "\(bits) \(format ?? 0)")
    }
    for (bits, format) in [
      (8, 2), (16, 2), (32, nil), (32, 1), (32, 2), (64, 1), (16, 3), (64, 3), (64, 6), (12, 1),
      (10, 1),
    ] as [(Int, Int?)] {
      for samples in [1, 3] {
        let code = code {
          ($0.bits, $0.format, $0.samples, $0.photometric) = (
            bits, format, samples, samples / 2 + 1
          )
        }
        #expect(code == "unsupported_format", "\(bits) \(format ?? 0), \(samples)")
      }
    }
    #expect(code { ($0.bits, $0.samples, $0.photometric) = (4, 3, 2) } == "unsupported_format")
  }

  @Test func `colours and layouts that are decoded wrong are refused`() {
    #expect(code { ($0.samples, $0.photometric) = (3, 2) } == nil)
    #expect(code { ($0.samples, $0.photometric) = (3, 8) } == nil)
    for photometric in [6, 9, 10, 32_844, 34_892] {
      let code = code { ($0.samples, $0.photometric) = (3, photometric) }
      #expect(code == "unsupported_format", "\(photometric)")
    }
    #expect(code { $0.photometric = 32_803 } == "unsupported_format")
    #expect(
      code { ($0.samples, $0.photometric, $0.planes) = (3, 2, 2) } == "unsupported_format")
    for compression in [6, 34_712, 34_933, 50_002] {
      #expect(code { $0.compression = compression } == "unsupported_format", "\(compression)")
    }
  }

  @Test func `tiles of JPEG and JPEG 2000 fill their place, or are refused`() throws {
    func grey(_ side: Int) -> Pixels {
      Pixels(width: side, height: side, bands: 1) { x, y in [UInt8(x * 3 + y)] }
    }
    func jpeg2000(_ pixels: Pixels, _ x: Int = 0) throws -> [UInt8] {
      var form = TestImages.JPEG2000Form()
      form.isBare = true
      form.offset.x = x
      return try TestImages.jp2(pixels, form)
    }
    for side in [8, 31, 32] {
      let jpeg = try TestImages.encode(grey(side), as: ".jpg[strip]")
      let wavelets = try jpeg2000(grey(side))
      let expected = side == 32 ? nil : "unsupported_format"
      #expect(code { ($0.compression, $0.tile) = (7, jpeg) } == expected)
      for compression in 33_003...33_005 {
        #expect(code { ($0.compression, $0.tile) = (compression, wavelets) } == expected)
      }
    }
    // A part of another kind, and none.
    #expect(
      code { ($0.compression, $0.tile) = (7, [UInt8](repeating: 9, count: 99)) } == "undecodable")
    #expect(code { ($0.compression, $0.tile) = (33_005, [0xff, 0x4f]) } == "undecodable")
    let offset = try jpeg2000(grey(32), 8)
    #expect(code { ($0.compression, $0.tile) = (33_005, offset) } == "unsupported_format")
    let colours = try jpeg2000(.scene(width: 32, height: 32))
    #expect(code { ($0.compression, $0.tile) = (33_005, colours) } == "unsupported_format")
    // libvips takes the colours for YCC.
    for (compression, expected) in [(33_003, nil), (33_005, "unsupported_format")] {
      let code = code {
        ($0.compression, $0.tile, $0.samples, $0.photometric) = (compression, colours, 3, 2)
      }
      #expect(code == expected)
    }
  }
}
