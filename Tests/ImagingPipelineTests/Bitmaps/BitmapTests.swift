// BitmapTests: BMPs of every header, depth and coding, compared with their input values.

import Core
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct BitmapTests {
  /// Random colours.
  private static func colors(_ count: Int) -> [[UInt8]] {
    var generator = SeededGenerator(seed: UInt64(count))
    return (0..<count).map { _ in (0..<3).map { _ in .random(in: 0...255, using: &generator) } }
  }

  private static func numbers(_ count: Int, below bound: Int, seed: UInt64 = 1) -> [UInt32] {
    var generator = SeededGenerator(seed: seed)
    return (0..<count).map { _ in UInt32.random(in: 0..<UInt32(bound), using: &generator) }
  }

  private func decoded(_ bytes: [UInt8]) throws -> Pixels {
    try Made(bytes) { $0.format = .png }.pixels()
  }

  @Test(arguments: [1, 2, 4, 8], [12, 16, 20, 24, 36, 40, 48, 52, 56, 64, 108, 124])
  func `palette indices decode to their colours`(depth: Int, headerLength: Int) throws {
    for (width, height, isTopDown) in [(1, 1, false), (13, 7, false), (33, 5, true), (8, 3, true)]
    where !(isTopDown && headerLength == 12) {
      // given
      var bitmap = CodedBitmap(size: PixelSize(width: width, height: height), depth: depth)
      bitmap.headerLength = headerLength
      bitmap.isTopDown = isTopDown
      bitmap.palette = Self.colors(1 << depth)
      bitmap.pixels = Self.numbers(width * height, below: 1 << depth)
      // when
      let pixels = try decoded(bitmap.file)
      // then
      #expect(pixels.size == bitmap.size)
      #expect(pixels.values == bitmap.pixels.flatMap { bitmap.palette[Int($0)] })
    }
  }

  @Test func `an index outside the palette decodes to black`() throws {
    for (headerLength, saysColors) in [(40, true), (12, false), (40, false)] {
      var bitmap = CodedBitmap(size: PixelSize(width: 16, height: 16), depth: 8)
      bitmap.headerLength = headerLength
      bitmap.saysColors = saysColors
      bitmap.palette = Self.colors(100)
      bitmap.pixels = (0..<256).map { UInt32($0) }
      let black = [[UInt8]](repeating: [0, 0, 0], count: 156)
      #expect(try decoded(bitmap.file).values == (bitmap.palette + black).flatMap { $0 })
    }
  }

  /// Depth, masks (empty for the defaults), header length, compression.
  static let masked: [(Int, [UInt32], Int, Int)] = [
    (16, [], 40, 0), (24, [], 40, 0), (24, [], 12, 0), (32, [], 40, 0), (32, [], 108, 0),
    (16, [0xf800, 0x07e0, 0x001f], 40, 3), (16, [0x0f00, 0x00f0, 0x000f, 0xf000], 40, 6),
    (16, [0x7c00, 0x03e0, 0x001f, 0x8000], 56, 3),
    (32, [0x0000_00ff, 0x00ff_0000, 0x0000_ff00], 52, 3),
    (32, [0xff00_0000, 0x00ff_0000, 0x0000_ff00, 0x0000_00ff], 108, 3),
    (32, [0x00ff_0000, 0x0000_ff00, 0x0000_00ff, 0xff00_0000], 124, 3),
    (32, [0x00ff_0000, 0x0000_ff00, 0x0000_00ff, 0], 124, 3),
    (32, [0x3ff0_0000, 0x000f_fc00, 0x0000_03ff], 40, 3), (32, [0xf, 0, 0xf0], 40, 3),
  ]

  @Test(arguments: masked.indices)
  func `bit masks assign bits to colours`(index: Int) throws {
    // given
    let (depth, masks, headerLength, compression) = Self.masked[index]
    var bitmap = CodedBitmap(size: PixelSize(width: 19, height: 11), depth: depth)
    bitmap.headerLength = headerLength
    bitmap.compression = compression
    bitmap.masks = masks
    bitmap.pixels = Self.numbers(19 * 11, below: 1 << depth - 1)
    // when
    let pixels = try decoded(bitmap.file)
    // then: each channel's bits are scaled from their maximum to 255, exactly
    let usual: [UInt32] =
      depth == 16 ? [0x7c00, 0x03e0, 0x001f] : [0xff0000, 0x00ff00, 0x0000ff]
    let used = masks.isEmpty ? usual : masks.last == 0 ? masks.dropLast() : masks
    #expect(pixels.bands == used.count)
    for (pixel, place) in zip(bitmap.pixels, 0...) {
      for (band, mask) in used.enumerated() {
        let share = mask == 0 ? 0 : Double(pixel & mask) / Double(mask)
        let value = Double(pixels.values[place * used.count + band])
        #expect(abs(value - share * 255) < 1)
      }
    }
  }

  @Test func `an alpha channel that is zero everywhere is ignored`() throws {
    var bitmap = CodedBitmap(size: PixelSize(width: 3, height: 2), depth: 32)
    bitmap.headerLength = 124
    bitmap.compression = 3
    bitmap.masks = [0x00ff_0000, 0x0000_ff00, 0x0000_00ff, 0xff00_0000]
    bitmap.pixels = [UInt32](repeating: 0x00c8_6432, count: 6)
    #expect(try decoded(bitmap.file)[1, 1] == [200, 100, 50, 255])
  }

  @Test func `run-length data may end before the last row only with an end marker`() throws {
    var bitmap = CodedBitmap(size: PixelSize(width: 4, height: 3), depth: 8)
    bitmap.compression = 1
    bitmap.palette = [[10, 20, 30], [200, 100, 50]]
    bitmap.runs = [4, 1, 0, 1]
    #expect(try decoded(bitmap.file).rgb(x: 0, y: 2) == [200, 100, 50])
    #expect(try decoded(bitmap.file).rgb(x: 0, y: 0) == [10, 20, 30])
    bitmap.runs = [4, 1, 0, 0, 4, 1, 0, 0, 4, 1]
    #expect(try decoded(bitmap.file).rgb(x: 3, y: 0) == [200, 100, 50])
    for runs: [UInt8] in [[], [4], [4, 1], [4, 1, 0, 0, 2, 1], [0, 200, 1, 1], [0, 2, 1]] {
      bitmap.runs = runs
      #expect(Made.isUndecodable(bitmap.file))
    }
  }

  @Test func `an embedded profile is applied`() throws {
    // given
    let profile = LittleCMS.profile(LittleCMS.displayP3, gamma: 2.2)
    let pixels = Pixels(width: 4, height: 4, color: [200, 100, 50])
    let png = try TestImages.encode(
      pixels.values, width: 4, bands: 3, as: .sRGB, profile: profile, suffix: ".png")
    var bitmap = CodedBitmap(size: PixelSize(width: 4, height: 4), depth: 24)
    bitmap.headerLength = 124
    bitmap.profile = profile
    bitmap.pixels = [UInt32](repeating: 0xc8_6432, count: 16)
    // when, then
    #expect(try decoded(bitmap.file).values == decoded(png).values)
    #expect(try decoded(bitmap.file).rgb(x: 1, y: 1) != [200, 100, 50])
  }

  @Test func `dimensions are limited by the data and the pixel limit`() {
    // given: no pixels, or runs of unknown length
    var bitmap = CodedBitmap(size: PixelSize(width: 60_000, height: 60_000), depth: 8)
    bitmap.palette = [[1, 2, 3]]
    bitmap.runs = [0, 1]
    #expect(Made.isUndecodable(bitmap.file))
    bitmap.compression = 1
    #expect(
      Made.error(bitmap.file) == .tooManyPixels(pixels: 3_600_000_000, limit: 150_000_000))
    for (width, height) in [(0, 4), (4, 0), (-4, 4), (Int(Int32.max), 4), (4, Int(Int32.min))] {
      var bitmap = CodedBitmap(size: PixelSize(width: width, height: height), depth: 8)
      bitmap.runs = []
      #expect(Made.isUndecodable(bitmap.file))
    }
  }

  @Test func `bitmap kinds for printers and OS/2 are unsupported_format`() {
    for (compression, depth, length) in [(4, 0, 40), (5, 0, 40), (3, 1, 64), (4, 24, 64)] {
      var bitmap = CodedBitmap(size: PixelSize(width: 4, height: 4), depth: depth)
      bitmap.compression = compression
      bitmap.headerLength = length
      bitmap.runs = []
      guard case .unsupportedFormat = Made.error(bitmap.file) else {
        Issue.record("compression \(compression)")
        continue
      }
    }
  }
}
