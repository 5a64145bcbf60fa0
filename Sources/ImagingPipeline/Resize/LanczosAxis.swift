// LanczosAxis: the Lanczos3 windows and weights of a reduction along one axis.

import Glibc

/// One axis of a resize with Lanczos3: a window of source pixels for each result pixel, with a
/// weight for each source pixel. When reducing, the kernel is as wide as the factor; when enlarging, it interpolates.
///
/// Pixels are areas: the centre of pixel 0 is at 0.5, in the source and in the result. A window
/// that exceeds the image is cut off, and the remaining weights are normalized.
struct LanczosAxis {
  /// The fraction bits of a weight; the weights of a window add up to exactly 1.
  static let weightBits = 14

  /// The number of weights per window, including zeros at the end; a multiple of `tapsMultiple`.
  let taps: Int
  /// The first source pixel of each window.
  let first: [Int]
  /// The number of source pixels of each window, at most `taps`.
  let counts: [Int]
  /// `taps` weights for each window.
  let weights: [Int16]

  /// Computes the windows.
  ///
  /// - Parameters:
  ///   - source: The number of source pixels.
  ///   - start: The start of the visible span, in pixels from the edge.
  ///   - span: The length of the visible span in source pixels; fractional if the last pixel was
  ///     padded or an edge lies within a pixel.
  ///   - target: The number of result pixels, at least 1.
  ///   - tapsMultiple: How many pixels are summed up at a time; unused weights are 0.
  init(source: Int, start: Double, span: Double, target: Int, tapsMultiple: Int = 2) {
    let factor = span / Double(target)
    let width = max(1, factor)
    let reach = Self.lobes * width
    let maximum = min(source, Int(2 * reach) + 2)
    taps = (maximum + tapsMultiple - 1) / tapsMultiple * tapsMultiple
    var first: [Int] = []
    var counts: [Int] = []
    var weights = [Int16](repeating: 0, count: target * taps)
    for index in 0..<target {
      let middle = start + (Double(index) + 0.5) * factor
      // The pixels whose centres are within reach; at least the pixel that contains the centre.
      let low = min(max(0, Int((middle - reach + 0.5).rounded(.down))), source - 1)
      let high = min(
        max(low + 1, Int((middle + reach + 0.5).rounded(.down))), source, low + maximum)
      let exact = (low..<high).map { Self.lanczos((Double($0) + 0.5 - middle) / width) }
      first.append(low)
      counts.append(high - low)
      for (tap, weight) in Self.whole(exact).enumerated() { weights[index * taps + tap] = weight }
    }
    self.first = first
    self.counts = counts
    self.weights = weights
  }

  /// The lobes of Lanczos3 on either side.
  private static let lobes = 3.0

  private static func lanczos(_ x: Double) -> Double {
    guard abs(x) < lobes else { return 0 }
    guard abs(x) > 1e-9 else { return 1 }
    let angle = Double.pi * x
    return lobes * sin(angle) * sin(angle / lobes) / (angle * angle)
  }

  /// Returns weights as integers. The rounding error goes to the largest weight, so uniform areas
  /// stay exactly the same.
  private static func whole(_ exact: [Double]) -> [Int16] {
    let unit = Double(1 << weightBits)
    let sum = exact.reduce(0, +)
    var weights = exact.map { Int(($0 / sum * unit).rounded()) }
    let largest = weights.indices.max { weights[$0] < weights[$1] } ?? 0
    weights[largest] += 1 << weightBits - weights.reduce(0, +)
    // Each weight is below 2: in the narrowest window the centre pixel has nearly all of the
    // weight.
    return weights.map { Int16(clamping: $0) }
  }
}
