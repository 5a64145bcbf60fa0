// ResamplerTests: reductions of all small sizes, usual ones and the longest sides, beside sums in
// floating point.

import Core
import Glibc
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct ResamplerTests {
  @Test(arguments: 1...4)
  func `every side up to 40 is reduced exactly to every shorter one`(
    bands: Int
  ) throws {
    // given: each pair of sides once across and once down, in another order
    let pairs = (1...40).flatMap { source in (1...source).map { (source, $0) } }
    var generator = SeededGenerator(seed: UInt64(bands))
    let across = pairs.shuffled(using: &generator)
    let down = pairs.shuffled(using: &generator)
    // Each number of bands takes another quarter of the pairs; together they cover every pair.
    for index in stride(from: bands - 1, to: pairs.count, by: 4) {
      let (width, toWidth) = across[index]
      let (height, toHeight) = down[index]
      let source = Pixels(width: width, height: height, bands: bands) { _, _ in
        // Black and white, where negative weights show most.
        (0..<bands).map { _ in
          Bool.random(using: &generator)
            ? .random(in: 0...255, using: &generator)
            : [0, 255].randomElement(using: &generator) ?? 0
        }
      }
      // when
      let target = PixelSize(width: toWidth, height: toHeight)
      let made = try Self.reduced(source, to: target)
      // then
      Self.expect(made, isLike: Self.expected(source, to: target))
    }
  }

  @Test(arguments: 1...4)
  func `a uniform colour is kept at every size`(bands: Int) throws {
    var generator = SeededGenerator(seed: UInt64(bands))
    for width in 1...40 {
      for toWidth in 1...width {
        // given: an alpha of at least 5, because a lower one does not preserve 255 steps of colour
        let height = 41 - width
        let toHeight = max(1, (41 - width) / toWidth)
        var color = (0..<bands).map { _ in UInt8.random(in: 0...255, using: &generator) }
        if bands.isMultiple(of: 2) { color[bands - 1] = max(color[bands - 1], 5) }
        // when
        let made = try Self.reduced(
          Pixels(width: width, height: height, color: color),
          to: PixelSize(width: toWidth, height: toHeight))
        // then
        #expect(made.values.indices.allSatisfy { made.values[$0] == color[$0 % bands] })
      }
    }
  }

  @Test(arguments: [
    (12_000, 2, 1, 1), (2, 12_000, 1, 1), (65_535, 1, 1, 1), (1, 65_535, 1, 1),
    (65_535, 3, 65_534, 1),
    (3, 65_535, 2, 64_000), (65_535, 1, 300, 1), (2_000_000, 1, 1, 1), (1, 2_000_000, 1, 3),
  ])
  func `the longest sides are reduced`(width: Int, height: Int, toWidth: Int, toHeight: Int) throws
  {
    // given
    let color: [UInt8] = [255, 0, 77]
    // when
    let made = try Self.reduced(
      Pixels(width: width, height: height, color: color),
      to: PixelSize(width: toWidth, height: toHeight))
    // then
    #expect(made.values.indices.allSatisfy { made.values[$0] == color[$0 % 3] })
  }

  @Test func `every pixel of a very long side is weighted`() throws {
    for (width, height, toWidth, toHeight) in [(60_000, 1, 3, 1), (2, 65_535, 1, 1)] {
      // given: dark and light pixels, increasingly light along the axis
      var generator = SeededGenerator(seed: 5)
      let length = max(width, height)
      let source = Pixels(width: width, height: height, bands: 1) { x, y in
        [Int.random(in: 0..<length, using: &generator) < max(x, y) ? 250 : 5]
      }
      // when
      let target = PixelSize(width: toWidth, height: toHeight)
      let made = try Self.reduced(source, to: target)
      // then: weights are so small that their rounding is visible
      let expected = Self.expected(source, to: target)
      #expect(zip(made.values, expected).allSatisfy { abs(Double($0) - $1) <= 1 })
    }
  }

  @Test(arguments: [
    (90, 60, 89, 60), (90, 60, 45, 30), (97, 61, 40, 25), (97, 61, 30, 61), (97, 61, 97, 20),
    (64, 64, 1, 1), (150, 100, 40, 27), (800, 600, 20, 20), (1000, 333, 20, 20), (2000, 40, 20, 20),
  ])
  func `a result's reduction matches Lanczos3 within rounding`(
    width: Int, height: Int, toWidth: Int, toHeight: Int
  ) throws {
    for bands in 1...4 {
      // given
      var generator = SeededGenerator(seed: UInt64(width * bands))
      let source = Pixels(width: width, height: height, bands: bands) { _, _ in
        (0..<bands).map { _ in UInt8.random(in: 0...255, using: &generator) }
      }
      let target = PixelSize(width: toWidth, height: toHeight)
      // when
      let made = try Made(
        try TestImages.encode(source, as: ".png"), width: toWidth, height: toHeight, fit: .fill,
        format: .png
      ).pixels()
      // then
      #expect(made.bands == bands && made.size == target)
      Self.expect(made, isLike: Self.expected(source, to: target))
    }
  }

  /// Expects half a step for the last rounding and a tenth for earlier ones; colours of low alpha
  /// are coarser.
  private static func expect(_ made: Pixels, isLike expected: [Double]) {
    let bands = made.bands
    let hasAlpha = bands.isMultiple(of: 2)
    for index in made.values.indices {
      let alpha = hasAlpha ? expected[index / bands * bands + bands - 1] : 255
      let isColor = hasAlpha && index % bands < bands - 1
      if isColor && abs(alpha - 0.5) < 0.1 { continue }
      let difference = abs(Double(made.values[index]) - expected[index])
      #expect(difference <= (isColor ? 0.6 + 12 / max(alpha, 1) : 0.6), "\(made.size) \(index)")
    }
  }

  private static func reduced(_ source: Pixels, to target: PixelSize) throws -> Pixels {
    let image = try source.image()
    var result = Pixels(
      width: target.width, height: target.height,
      color: [UInt8](repeating: 0, count: source.bands))
    let row = target.width * source.bands
    var rows = 0
    try Resampler(of: image, to: target).run { y, bytes in
      rows += 1
      result.values.replaceSubrange(
        y * row..<(y + 1) * row, with: UnsafeBufferPointer(start: bytes, count: row))
    }
    #expect(rows == target.height)
    return result
  }

  // MARK: Reference

  /// Averages whole pixels down to a factor of 4 as the resampler does, then applies Lanczos3,
  /// without rounding.
  private static func expected(_ source: Pixels, to target: PixelSize) -> [Double] {
    let bands = source.bands
    let hasAlpha = bands.isMultiple(of: 2)
    var values = source.values.map { Double($0) }
    if hasAlpha {
      for index in values.indices where index % bands < bands - 1 {
        values[index] *= values[index / bands * bands + bands - 1] / 255
      }
    }
    let width = source.size.width
    let height = source.size.height
    let across = windows(from: width, to: target.width)
    let down = windows(from: height, to: target.height)
    var narrow = [Double](repeating: 0, count: target.width * height * bands)
    for y in 0..<height {
      for x in 0..<target.width {
        for (pixel, weight) in across[x] {
          for band in 0..<bands {
            narrow[(y * target.width + x) * bands + band] +=
              weight * values[(y * width + pixel) * bands + band]
          }
        }
      }
    }
    let row = target.width * bands
    var result = [Double](repeating: 0, count: row * target.height)
    for y in 0..<target.height {
      for (line, weight) in down[y] {
        for index in 0..<row { result[y * row + index] += weight * narrow[line * row + index] }
      }
    }
    if hasAlpha {
      for index in result.indices where index % bands < bands - 1 {
        let alpha = result[index / bands * bands + bands - 1]
        result[index] *= alpha < 0.5 ? 0 : 255 / alpha
      }
    }
    return result.map { min(max($0, 0), 255) }
  }

  /// Returns the weights of the source's pixels for each result pixel of an axis.
  private static func windows(from source: Int, to target: Int) -> [[(pixel: Int, weight: Double)]]
  {
    let box = min(max(1, Int(Double(source) / Double(target) / 4)), 256)
    let count = (source + box - 1) / box
    let factor = Double(source) / Double(box) / Double(target)
    func sinc(_ x: Double) -> Double { abs(x) < 1e-9 ? 1 : sin(.pi * x) / (.pi * x) }
    return (0..<target).map { index in
      let exact = (0..<count).map { pixel in
        let x = (Double(pixel) + 0.5) / factor - Double(index) - 0.5
        return abs(x) < 3 ? sinc(x) * sinc(x / 3) : 0
      }
      let sum = exact.reduce(0, +)
      return (0..<source).compactMap { pixel in
        let inBox = min(box, source - pixel / box * box)
        let weight = exact[pixel / box] / sum / Double(inBox)
        return weight == 0 ? nil : (pixel, weight)
      }
    }
  }
}
