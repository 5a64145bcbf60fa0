// PNGPaletteTests: PNGs of few colours with a palette that has each of them.

import Core
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct PNGPaletteTests {
  /// Starts libvips, which two threads must not do at the same time.
  init() { TestImages.start() }

  private static let counts = [1, 2, 3, 4, 5, 16, 17, 255, 256, 257]

  /// Returns an image in memory of so many colours, each at least once.
  private static func image(
    of count: Int, bands: Int, size: PixelSize, _ random: inout SeededGenerator
  ) -> Pixels {
    var colours: Set<[UInt8]> = []
    while colours.count < count { colours.insert(random.bytes(bands)) }
    let list = colours.sorted { $0.lexicographicallyPrecedes($1) }
    var number = 0
    return Pixels(width: size.width, height: size.height, bands: bands) { _, _ in
      number += 1
      return number <= count ? list[number - 1] : list[random.number(0...count - 1)]
    }
  }

  private static func encoded(
    _ pixels: Pixels, isInterlaced: Bool = false, reducesColours: Bool = false
  ) throws -> [UInt8] {
    let image = try pixels.image()
    return try PNGEncoder(
      effort: 4, effortOfPalette: 4, isInterlaced: isInterlaced, reducesColours: reducesColours
    ).encode(image).withUnsafeBytes { Array($0) }
  }

  @Test(arguments: counts, [false, true])
  func `up to 256 colours are all kept, with or without alpha, in no more bytes`(
    count: Int, isInterlaced: Bool
  ) throws {
    var random = SeededGenerator(seed: UInt64(count))
    for bands in [3, 4] {
      for size in [PixelSize(width: 31, height: 23), PixelSize(width: 129, height: 3)] {
        // Given
        let pixels = Self.image(of: count, bands: bands, size: size, &random)
        let all = try TestImages.encode(
          pixels, as: ".png[filter=all,compression=4,strip,interlace=\(isInterlaced)]")
        for reducesColours in [false, count < 257] {
          // When
          let png = try Self.encoded(
            pixels, isInterlaced: isInterlaced, reducesColours: reducesColours)
          // Then
          #expect(png.count <= all.count)
          #expect(png[28] == (isInterlaced ? 1 : 0))
          if count == 257 { #expect(png == all) }
          if size.height > 3, (4..<257).contains(count) { #expect(png[25] == 3) }
          if png[25] == 3 { #expect(Int(png[24]) == Self.bits(of: count)) }
          #expect(try Pixels(decoding: png).values == pixels.values)
        }
      }
    }
  }

  private static func bits(of count: Int) -> Int {
    switch count {
    case ...2: 1
    case ...4: 2
    case ...16: 4
    default: 8
    }
  }

  @Test func `an opaque image with alpha keeps it`() throws {
    let pixels = Pixels(width: 40, height: 40, bands: 4) { x, y in [UInt8(x * y % 9), 9, 9, 255] }
    let png = try Self.encoded(pixels)
    #expect(png[25] == 3)
    let found = try Pixels(decoding: png)
    #expect(found.bands == 4 && found.values == pixels.values)
  }

  @Test(arguments: [PixelSize(width: 1, height: 1), PixelSize(width: 9, height: 1)])
  func `a palette that costs more than it saves is left out`(size: PixelSize) throws {
    let pixels = Pixels(width: size.width, height: size.height, bands: 3) { x, _ in
      [UInt8(x), 200, 7]
    }
    let png = try Self.encoded(pixels, reducesColours: true)
    let all = try TestImages.encode(pixels, as: ".png[filter=all,compression=4,strip]")
    #expect(png.count <= all.count)
    #expect(try Pixels(decoding: png).values == pixels.values)
  }

  @Test func `an image above four megapixels has all samples`() throws {
    for (height, type) in [(2_000, UInt8(3)), (2_001, 2)] {
      let png = try Self.encoded(Pixels(width: 2_000, height: height, color: [200, 30, 30]))
      #expect(png[25] == type)
    }
  }

  @Test func `grey images have no palette`() throws {
    for bands in [1, 2] {
      let pixels = Pixels(width: 90, height: 90, bands: bands) { x, _ in
        Array([UInt8(x), 200][..<bands])
      }
      let png = try Self.encoded(pixels, reducesColours: true)
      #expect(png[25] == (bands == 1 ? 0 : 4))
      #expect(try Pixels(decoding: png).values == pixels.values)
    }
  }

  @Test(arguments: 0..<60 as Range<UInt64>)
  func `a file of another form gets no palette`(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let size = PixelSize(width: 20, height: 15)
    let pixels = Self.image(of: 5, bands: 3, size: size, &random)
    let image = try Image(blank: size, bands: 3, profile: [])
    for y in 0..<size.height {
      try image.write(Array(pixels.values[y * 60..<(y + 1) * 60]), row: y)
    }
    guard let palette = PNGPalette(of: image) else {
      Issue.record("no palette")
      return
    }
    let indexed = { (png: [UInt8]) in png.withUnsafeBytes { palette.indexed($0, of: image) } }
    let png = try TestImages.encode(pixels, as: ".png")
    #expect(indexed(png) != nil)
    // Another size, other samples, a palette, and damage
    let others = try [(3, 21, ".png"), (4, 20, ".png"), (3, 20, ".png[palette]")].map {
      bands, width, suffix in
      let size = PixelSize(width: width, height: 15)
      return try TestImages.encode(Self.image(of: 5, bands: bands, size: size, &random), as: suffix)
    }
    var damaged = png
    damaged[random.number(8...png.count - 1)] ^= 1 << UInt8(random.number(0...7))
    for other in others + [damaged, [], Array(png[..<20])] { #expect(indexed(other) == nil) }
  }
}
