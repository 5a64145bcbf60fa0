// ResamplerTests: reductions, compared with floating-point sums and exact results.

import Glibc
import Model
import TestSupport
import Testing

@Suite(.onOwnThreads) struct ResamplerTests {
  @Test(arguments: [
    (90, 60, 89, 60), (90, 60, 45, 30), (97, 61, 40, 25), (97, 61, 30, 61), (97, 61, 97, 20),
    (64, 64, 1, 1), (150, 100, 40, 27),
  ])
  func `a reduction matches Lanczos3 within rounding`(
    width: Int, height: Int, toWidth: Int, toHeight: Int
  ) throws {
    for bands in 1...4 {
      // given
      let source = Self.noise(width: width, height: height, bands: bands)
      let expected = Self.lanczos(of: source, width: toWidth, height: toHeight)
      // when
      let made = try Made(try TestImages.encode(source, as: ".png")) {
        $0.width = toWidth
        $0.height = toHeight
        $0.fit = .fill
        $0.format = .png
      }.pixels()
      // then: half a step for the last rounding, the rest for earlier ones; colours of low alpha
      // are coarser
      #expect(made.bands == bands && made.size == expected.size)
      for index in 0..<toWidth * toHeight {
        let alpha = expected.alpha[index]
        for band in 0..<bands {
          let difference = abs(
            Double(made.values[index * bands + band]) - expected.values[index * bands + band])
          let isColor = bands % 2 == 0 && band < bands - 1
          #expect(difference <= (isColor ? 0.6 + 12 / max(alpha, 1) : 0.6))
        }
      }
    }
  }

  @Test(arguments: [(800, 600), (1000, 333), (2000, 40)])
  func `a large reduction averages first and keeps the likeness`(width: Int, height: Int) throws {
    // given: reductions by up to 100, with sides that no box divides evenly
    let source = Pixels.scene(width: width, height: height, alpha: true)
    // when
    let made = try Made(try TestImages.encode(source, as: ".png")) {
      $0.width = 20
      $0.height = 20
      $0.fit = .fill
    }.pixels()
    // then
    let expected = Self.lanczos(of: source, width: 20, height: 20)
    for (value, exact) in zip(made.values, expected.values) {
      #expect(abs(Double(value) - exact) < 4)
    }
  }

  @Test(arguments: [1, 2, 7, 30, 59])
  func `a uniform colour is kept by a reduction`(width: Int) throws {
    for color: [UInt8] in [
      [255, 255, 255], [0, 0, 0], [1, 128, 254], [9, 200, 31, 255], [77, 7],
    ] {
      let source = try TestImages.encode(Pixels(width: 60, height: 40, color: color), as: ".png")
      let made = try Made(source) {
        $0.width = width
        $0.format = .png
      }.pixels()
      let isPlain = made.values.indices.allSatisfy { made.values[$0] == color[$0 % color.count] }
      // A colour under alpha has only as many steps as its alpha.
      #expect(isPlain || color == [77, 7] && isClose(made[0, 0], to: color, within: 1))
    }
  }

  @Test func `a reduced image keeps the profile for its conversion`() throws {
    // given: pure red of Display P3, outside sRGB; without its profile the value would stay 200,
    // 40, 40
    let source = Pixels(width: 60, height: 40, color: [200, 40, 40])
    // when
    let small = try Made(try TestImages.encode(source, as: ".png[profile=p3]")) { $0.width = 20 }
      .pixels()
    let same = try Made(try TestImages.encode(source, as: ".png[profile=p3]")).pixels()
    // then
    #expect(isClose(small[10, 5], to: same[30, 20], within: 2))
    #expect(!isClose(small[10, 5], to: [200, 40, 40], within: 8))
  }

  // MARK: Reference

  private struct Exact {
    let size: PixelSize
    let values: [Double]
    /// The alpha of each pixel, 0–255; 255 without alpha.
    let alpha: [Double]
  }

  private static func noise(width: Int, height: Int, bands: Int) -> Pixels {
    var generator = SeededGenerator(seed: UInt64(width * bands))
    return Pixels(width: width, height: height, bands: bands) { _, _ in
      (0..<bands).map { _ in UInt8.random(in: 0...255, using: &generator) }
    }
  }

  /// Computes the separable sums in floating point, without rounding.
  private static func lanczos(of source: Pixels, width: Int, height: Int) -> Exact {
    let bands = source.bands
    let hasAlpha = source.bands % 2 == 0
    let w = source.size.width
    let h = source.size.height
    var values = source.values.map { Double($0) }
    if hasAlpha {
      for index in values.indices where index % bands < bands - 1 {
        values[index] *= values[index / bands * bands + bands - 1] / 255
      }
    }
    let across = weights(from: w, to: width)
    let down = weights(from: h, to: height)
    var rows = [Double](repeating: 0, count: width * h * bands)
    for y in 0..<h {
      for x in 0..<width {
        for (tap, weight) in across[x] {
          for band in 0..<bands {
            rows[(y * width + x) * bands + band] += weight * values[(y * w + tap) * bands + band]
          }
        }
      }
    }
    var result = [Double](repeating: 0, count: width * height * bands)
    for y in 0..<height {
      for (tap, weight) in down[y] {
        for index in 0..<width * bands {
          result[y * width * bands + index] += weight * rows[tap * width * bands + index]
        }
      }
    }
    var alphas = [Double](repeating: 255, count: width * height)
    for pixel in alphas.indices where hasAlpha {
      let alpha = result[pixel * bands + bands - 1]
      alphas[pixel] = alpha
      for band in 0..<bands - 1 {
        result[pixel * bands + band] *= alpha < 0.5 ? 0 : 255 / alpha
      }
    }
    return Exact(
      size: PixelSize(width: width, height: height),
      values: result.map { min(max($0, 0), 255) }, alpha: alphas)
  }

  private static func weights(from source: Int, to target: Int) -> [[(Int, Double)]] {
    let factor = Double(source) / Double(target)
    return (0..<target).map { index in
      let all = (0..<source).map { pixel -> (Int, Double) in
        let x = abs((Double(pixel) + 0.5) / factor - Double(index) - 0.5)
        let sinc = { (x: Double) in x < 1e-9 ? 1 : sin(.pi * x) / (.pi * x) }
        return (pixel, x < 3 ? sinc(x) * sinc(x / 3) : 0)
      }.filter { $0.1 != 0 }
      let sum = all.reduce(0) { $0 + $1.1 }
      return all.map { ($0.0, $0.1 / sum) }
    }
  }
}
