// JPEGSamplingTests: JPEGs of any sampling, compared with floating-point sums.

import Model
import TestSupport
import Testing

@Suite(.onOwnThreads) struct JPEGSamplingTests {
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
