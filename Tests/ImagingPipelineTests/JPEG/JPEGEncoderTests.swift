// JPEGEncoderTests: JPEG results, their tables, sampling, metadata and errors.

import CVips
import Core
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct JPEGEncoderTests {
  init() { TestImages.start() }

  private static let sizes = [
    PixelSize(width: 1, height: 1), PixelSize(width: 7, height: 19),
    PixelSize(width: 130, height: 97),
  ]

  @Test(arguments: sizes, [40, 89, 90, 100])
  func `pixels in memory and computed in strips give the same JPEG, like the pixels`(
    size: PixelSize, quality: Int
  ) throws {
    for (bands, isProgressive) in [(1, false), (1, true), (3, false), (3, true)] {
      // given
      let settings = JPEGEncoder.Settings(
        quality: quality, isProgressive: isProgressive, subsamples: quality < 90)
      let pixels = Self.smooth(size, bands: bands)
      let image = try pixels.image()
      let strips = try image.cut(x: 0, y: 0, size)
      // The first is read where it is, the second as libvips computes it.
      let areInMemory = [image.pixels != nil, strips.pixels != nil]
      #expect(areInMemory == [true, false])
      // when
      let bytes = try Self.encode(image, settings)
      // then
      #expect(try Self.encode(strips, settings) == bytes)
      #expect(bytes.contains([0xff, 0xc2]) == isProgressive)
      let made = try Pixels(decoding: bytes)
      #expect(made.size == size && made.bands == bands)
      #expect(made.psnr(to: pixels) > 30)
    }
  }

  @Test(arguments: [(1, 0.02), (50, 1), (80, 2.5), (100, 0)])
  func `tables are those of the encoder, scaled`(quality: Int, finer: Double) throws {
    // libjpeg: 5000 ÷ quality percent below 50, 200 - 2 × quality from there on; 1 to 255.
    let bytes = try Self.encode(
      try Self.smooth(PixelSize(width: 16, height: 16), bands: 3).image(),
      JPEGEncoder.Settings(quality: quality, isProgressive: false, subsamples: true))
    let tables = Self.tables(of: bytes)
    #expect(tables.count == 2)
    for (table, base) in zip(tables, [JPEGEncoder.luma, JPEGEncoder.chroma]) {
      // A zigzag's places (ISO/IEC 10918-1, figure A.6): the first two diagonals and the last.
      for (place, index) in [(0, 0), (1, 1), (2, 8), (3, 16), (4, 9), (5, 2), (63, 63)] {
        let scaled = finer > 0 ? Double(base[index]) / finer : 0
        #expect(abs(Double(table[place]) - min(255, max(1, scaled))) <= 0.5)
      }
    }
  }

  @Test(arguments: [(89, 0x22), (90, 0x11)])
  func `chroma is halved below quality 90`(quality: Int, sampling: Int) throws {
    let made = try Made(TestImages.png(width: 40, height: 30), format: .jpeg, quality: quality)
    let frame = try #require(made.bytes.firstRange(of: [0xff, 0xc0]))
    // Length, precision, height, width, components; then a name and the sampling factors of luma.
    #expect(Int(made.bytes[frame.upperBound + 9]) == sampling)
    // No JFIF: 18 bytes that no decoder needs.
    #expect(made.bytes[2...].starts(with: [0xff, 0xdb]))
  }

  @Test func `a result too large to be held keeps its metadata, with its own size in Exif`() throws
  {
    // given: above `Pipeline.maximumPixelsHeld`
    let source = try TestImages.described(width: 2600, height: 1700, as: ".jpg")
    // when
    let made = try Made(source, format: .jpeg, quality: 50) { $0.stripsMetadata = false }
    // then
    #expect(made.size.pixels > 4_000_000)
    let exif = try #require(try TestImages.metadata(of: made.bytes)["exif-data"])
    #expect(exif.contains(TestImages.exifMark))
    #expect(try Self.side(of: 0x02, in: exif) == made.size.width)
    #expect(try Self.side(of: 0x03, in: exif) == made.size.height)
  }

  @Test(arguments: [2, 4], [false, true])
  func `alpha is dropped`(bands: Int, isInMemory: Bool) throws {
    let size = PixelSize(width: 30, height: 20)
    let settings = JPEGEncoder.Settings(quality: 80, isProgressive: false, subsamples: true)
    let pixels = Pixels(width: 30, height: 20, bands: bands) { x, y in
      (0..<bands).map { $0 == bands - 1 ? 255 : UInt8(4 * x + y * $0) }
    }
    let opaque = Pixels(width: 30, height: 20, bands: bands - 1) { x, y in
      (0..<bands - 1).map { UInt8(4 * x + y * $0) }
    }
    let image = try pixels.image()
    let bytes =
      isInMemory
      ? try Self.encode(image, settings)
      : try Self.encode(try image.cut(x: 0, y: 0, size), settings)
    #expect(try bytes == Self.encode(opaque.image(), settings))
  }

  @Test func `a result of many kilobytes is whole`() throws {
    // The buffer grows from 16 KiB, by its own size each time.
    let pixels = Pixels.noisy(width: 640, height: 480)
    let bytes = try Self.encode(
      try pixels.image(),
      JPEGEncoder.Settings(quality: 98, isProgressive: false, subsamples: false))
    #expect(bytes.count > 100_000 && bytes.suffix(2) == [0xff, 0xd9])
    #expect(try Pixels(decoding: bytes).psnr(to: pixels) > 35)
  }

  @Test(arguments: [false, true])
  func `kept metadata is that of every kind of JPEG, with the size of the result`(
    isGrey: Bool
  ) throws {
    let source = try TestImages.described(width: 320, height: 200, as: ".jpg")
    for (isProgressive, maximum) in [(false, nil), (true, nil), (false, 3_000)] as [(Bool, Int?)] {
      let made = try Made(source) {
        $0.format = .jpeg
        $0.effects.isGrayscale = isGrey
        $0.progressive = isProgressive
        $0.maxBytes = maximum
        $0.stripsMetadata = false
      }
      let found = try TestImages.metadata(of: made.bytes)
      let exif = found["exif-data"] ?? []
      #expect(exif.contains(TestImages.exifMark) && found["xmp-data"] != nil)
      #expect(try Self.side(of: 0x02, in: exif) == made.size.width)
      #expect(made.bytes.contains([0xff, 0xc2]) == isProgressive)
      #expect(try Pixels(decoding: made.bytes).bands == (isGrey ? 1 : 3))
    }
  }

  @Test func `a source that ends early fails, also in the middle of the strips`() throws {
    let source = try TestImages.encode(.noisy(width: 300, height: 400), as: ".png")
    for part in [0.3, 0.9] {
      let cut = Array(source[..<Int(Double(source.count) * part)])
      try cut.withUnsafeBytes { bytes in
        let image = try Loader.describe(bytes, as: .png, failOn: .warning)
        guard case .ofVariant(.undecodable) = Self.error(encoding: image) else {
          Issue.record("\(String(describing: Self.error(encoding: image)))")
          return
        }
      }
    }
  }

  @Test func `a side that JPEG cannot hold is an internal error with libjpeg's reason`() throws {
    let image = try Image(black: PixelSize(width: 65_501, height: 1))
    let error = Self.error(encoding: image)
    #expect(error?.code == "internal" && error?.logDetail?.contains("65500") == true)
  }

  // MARK: Helpers

  private static func smooth(_ size: PixelSize, bands: Int) -> Pixels {
    Pixels(width: size.width, height: size.height, bands: bands) { x, y in
      Array([UInt8(60 + x % 140), UInt8(80 + y % 90), UInt8(200 - (x + y) % 140)][..<bands])
    }
  }

  private static func encode(
    _ image: borrowing Image, _ settings: JPEGEncoder.Settings
  ) throws(ImageError) -> [UInt8] {
    try JPEGEncoder.encode(image, settings).withUnsafeBytes { Array($0) }
  }

  /// Returns PixelXDimension (tag 0xa002) or PixelYDimension (0xa003; EXIF 2.32, 4.6.5),
  /// little-endian as libexif writes them.
  private static func side(of tag: UInt8, in exif: [UInt8]) throws -> Int {
    let place = try #require(exif.firstRange(of: [tag, 0xa0]))
    let value = exif[(place.lowerBound + 8)...].prefix(2)
    return value.reversed().reduce(0) { $0 << 8 | Int($1) }
  }

  private static func error(encoding image: borrowing Image) -> ImageError? {
    do throws(ImageError) {
      _ = try encode(
        image, JPEGEncoder.Settings(quality: 80, isProgressive: false, subsamples: true))
      return nil
    } catch {
      return error
    }
  }

  /// Returns the quantization tables of a JPEG in zigzag order.
  private static func tables(of jpeg: [UInt8]) -> [[UInt8]] {
    jpeg.withUnsafeBytes { bytes in
      var markers = JPEGMarkers(bytes)
      var tables: [[UInt8]] = []
      while let (marker, content) = markers.nextSegment(), marker != 0xda {
        var rest = Array(content)[...]
        while marker == 0xdb, rest.count >= 65 {
          tables.append(Array(rest.dropFirst().prefix(64)))
          rest = rest.dropFirst(65)
        }
      }
      return tables
    }
  }
}
