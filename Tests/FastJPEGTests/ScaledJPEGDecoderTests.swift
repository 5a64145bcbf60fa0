// ScaledJPEGDecoderTests: reduced decoding of any sampling, beside the lowest frequencies of full
// pixels.

import Core
import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) struct ScaledJPEGDecoderTests {
  @Test(arguments: 1...4, ["", ",optimize_coding", ",restart_interval=3"])
  func `a block is computed from as many lowest frequencies as it has pixels`(
    count: Int, options: String
  ) throws {
    for (bands, width, height) in [(3, 24, 16), (3, 21, 13), (1, 16, 16), (1, 33, 9)] {
      // given: no subsampling, so that full decoding returns what was encoded
      let bytes = try TestImages.encode(
        Self.noise(width: width, height: height, bands: bands),
        as: ".jpg[Q=96,subsample_mode=off\(options)]")
      // when
      let reduced = try #require(try JPEGDecoders.reduced(bytes, toEighths: count))
      // then
      let full = try Pixels(decoding: bytes)
      #expect(
        reduced.size == PixelSize(width: (width * count + 7) / 8, height: (height * count + 7) / 8))
      #expect(reduced.bands == bands)
      for (y, x, band) in Self.places(rows: height / 8, columns: width / 8, bands: bands) {
        let expected = Self.lowest(count, of: full, x: 8 * x, y: 8 * y, band: band)
        for (row, column, _) in Self.places(rows: count, columns: count, bands: 1) {
          let value = Double(reduced[x * count + column, y * count + row][band])
          #expect(abs(value - expected[row][column]) <= 2)
        }
      }
    }
  }

  @Test(arguments: [2, 4, 8])
  func `subsampled chroma keeps its position`(shrink: Int) throws {
    // given
    let scene = Pixels.scene(width: 240, height: 160)
    let bytes = try TestImages.encode(scene, as: ".jpg[Q=92,subsample_mode=on]")
    // when
    let reduced = try #require(try JPEGDecoders.reduced(bytes, by: shrink))
    // then
    #expect(reduced.psnr(to: Self.averages(of: scene, by: shrink)) > 34)
  }

  @Test func `a CMYK JPEG is left to libjpeg`() throws {
    let cmyk = try TestImages.cmykJPEG(width: 480, height: 320, color: [0, 200, 100, 20])
    #expect(try JPEGDecoders.reduced(cmyk, by: 4) == nil)
  }

  private static func noise(width: Int, height: Int, bands: Int) -> Pixels {
    var generator = SeededGenerator(seed: UInt64(width + bands))
    // Values away from black and white, where a decoder clamps each pixel.
    return Pixels(width: width, height: height, bands: bands) { _, _ in
      (0..<bands).map { _ in UInt8.random(in: 90...165, using: &generator) }
    }
  }

  private static func places(rows: Int, columns: Int, bands: Int) -> [(Int, Int, Int)] {
    (0..<rows * columns * bands).map { ($0 / bands / columns, $0 / bands % columns, $0 % bands) }
  }

  /// Transforms a block of 8×8 and transforms its lowest frequencies back to `count` × `count`.
  private static func lowest(
    _ count: Int, of pixels: Pixels, x: Int, y: Int, band: Int
  ) -> [[Double]] {
    func wave(_ frequency: Int, at place: Int, of size: Int) -> Double {
      let angle = Double((2 * place + 1) * frequency) * .pi / Double(2 * size)
      return cos(angle) * (frequency == 0 ? 1 : 2.0.squareRoot())
    }
    return (0..<count).map { row in
      (0..<count).map { column in
        var value = 0.0
        for (v, u, _) in places(rows: count, columns: count, bands: 1) {
          var sum = 0.0
          for (line, place, _) in places(rows: 8, columns: 8, bands: 1) {
            sum +=
              Double(pixels[x + place, y + line][band]) * wave(u, at: place, of: 8)
              * wave(v, at: line, of: 8)
          }
          value += sum / 64 * wave(u, at: column, of: count) * wave(v, at: row, of: count)
        }
        return min(max(value, 0), 255)
      }
    }
  }

  private static func averages(of pixels: Pixels, by factor: Int) -> Pixels {
    let width = pixels.size.width
    let height = pixels.size.height
    return Pixels(
      width: (width + factor - 1) / factor, height: (height + factor - 1) / factor,
      bands: pixels.bands
    ) { x, y in
      let columns = x * factor..<min((x + 1) * factor, width)
      let rows = y * factor..<min((y + 1) * factor, height)
      return (0..<pixels.bands).map { band in
        let sum = rows.reduce(0) { sum, row in
          columns.reduce(sum) { $0 + Int(pixels.values[(row * width + $1) * pixels.bands + band]) }
        }
        return UInt8((Double(sum) / Double(columns.count * rows.count)).rounded())
      }
    }
  }

  @Test(arguments: CodedJPEG.samplings.indices, 1...4)
  func `every pixel is computed from its block's lowest frequencies`(
    kind: Int, eighths: Int
  ) throws {
    var generator = SeededGenerator(seed: UInt64(kind))
    let factors = CodedJPEG.samplings[kind]
    for (width, height) in [(1, 1), (33, 8), (7, 41), (64, 48)] {
      for (restartInterval, hasLongCodes) in [(0, false), (1, true), (3, false)] {
        // given
        var jpeg = CodedJPEG(width: width, height: height, factors: factors, using: &generator)
        jpeg.restartInterval = restartInterval
        jpeg.hasLongCodes = hasLongCodes
        // when
        let reduced = try JPEGDecoders.reduced(jpeg.bytes, toEighths: eighths)
        // then: half a step for rounding
        let isTooWide = factors.contains { $0.across == 4 || $0.down == 4 } && factors.count > 1
        guard let reduced else {
          // A block of a colour component would become 12 or 16 pixels wide.
          #expect(eighths > 2 && isTooWide)
          continue
        }
        let expected = jpeg.reduced(toEighths: eighths)
        #expect(reduced.values.count == expected.count)
        #expect(zip(reduced.values, expected).allSatisfy { abs(Double($0) - $1) < 0.51 })
      }
    }
  }

  @Test(arguments: [2, 4, 8])
  func `maximum coefficients decode to black and white`(shrink: Int) throws {
    var generator = SeededGenerator(seed: 3)
    for signs in 0..<8 {
      // given: coefficients of maximum size, with each component above or below zero
      var jpeg = CodedJPEG(
        width: 40, height: 40, factors: [(1, 1), (1, 1), (1, 1)], using: &generator)
      jpeg.quantization = [UInt16](repeating: 255, count: 64)
      for component in 0..<3 {
        let sign = signs >> component & 1 == 0 ? 1 : -1
        jpeg.blocks[component] = jpeg.blocks[component].map { _ in
          [2_047 * sign] + [Int](repeating: 1_023 * sign, count: 63)
        }
      }
      // when
      let reduced = try #require(try JPEGDecoders.reduced(jpeg.bytes, by: shrink))
      // then: sums reach millions, so only clamped values are known exactly
      for (value, exact) in zip(reduced.values, jpeg.reduced(by: shrink))
      where exact == 0 || exact == 255 {
        #expect(abs(Double(value) - exact) <= 1)
      }
    }
  }

  @Test func `quantization factors above 8 bits leave the JPEG to libjpeg`() throws {
    var generator = SeededGenerator(seed: 4)
    var jpeg = CodedJPEG(
      width: 40, height: 40, factors: [(2, 2), (1, 1), (1, 1)], using: &generator)
    jpeg.quantization[63] = 255
    #expect(try JPEGDecoders.reduced(jpeg.bytes, by: 4) != nil)
    jpeg.quantization[63] = 256
    #expect(try JPEGDecoders.reduced(jpeg.bytes, by: 4) == nil)
    #expect(JPEGDecoders.libjpeg(jpeg.bytes, by: 4) != nil)
  }

  @Test(arguments: [8, 4])
  func `images of the maximum width or height decode completely`(shrink: Int) throws {
    for (width, height) in [(65_500, 3), (3, 65_500)] {
      // given: grey, with one coefficient per block
      var generator = SeededGenerator(seed: 9)
      let jpeg = CodedJPEG(width: width, height: height, factors: [(1, 1)], using: &generator)
      // when
      let reduced = try #require(try JPEGDecoders.reduced(jpeg.bytes, by: shrink))
      // then
      #expect(reduced.size.width == (width + shrink - 1) / shrink)
      #expect(reduced.size.height == (height + shrink - 1) / shrink)
      #expect(
        zip(reduced.values, jpeg.reduced(by: shrink)).allSatisfy { abs(Double($0) - $1) < 0.51 })
    }
  }
}
