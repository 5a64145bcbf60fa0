// LanczosAxis: which of a source's pixels make each pixel of the result along one side, and how much each counts.

import Glibc

/// One side of a reduction with Lanczos3: for each pixel of the result a window of the source's and a weight for each
/// of these.
///
/// Pixels are areas: the middle of pixel 0 is at 0.5, on both sides. A window that sticks out of the image is cut off
/// there, and the weights of what is left make up for it.
struct LanczosAxis {
  /// Weights are parts of 2 to the power of this; those of a window sum up to exactly 1.
  static let weightBits = 14
  /// Every window has room for this many weights times a whole number: the rest are 0.
  static let tapsMultiple = 4

  /// How many weights each window has, those of 0 at its end included; a multiple of `tapsMultiple`.
  let taps: Int
  /// The first source pixel of each window.
  let first: [Int]
  /// How many source pixels each window has, at most `taps`.
  let counts: [Int]
  /// `taps` weights for each window.
  let weights: [Int16]

  /// Computes the windows.
  ///
  /// - Parameters:
  ///   - source: Pixels there are.
  ///   - start: Where what the result shows begins, in pixels from the edge.
  ///   - span: Pixels that the result shows; not whole where the last one was filled up, or an edge lies within a pixel.
  ///   - target: Pixels of the result, at least 1 and at most `span`.
  init(source: Int, start: Double, span: Double, target: Int) {
    let factor = span / Double(target)
    let reach = Self.lobes * factor
    let most = min(source, Int(2 * reach) + 2)
    taps = (most + Self.tapsMultiple - 1) / Self.tapsMultiple * Self.tapsMultiple
    var first: [Int] = []
    var counts: [Int] = []
    var weights = [Int16](repeating: 0, count: target * taps)
    for index in 0..<target {
      let middle = start + (Double(index) + 0.5) * factor
      // Pixels whose middles are within reach; at least the one the middle is in.
      let low = min(max(0, Int((middle - reach + 0.5).rounded(.down))), source - 1)
      let high = min(max(low + 1, Int((middle + reach + 0.5).rounded(.down))), source, low + most)
      let exact = (low..<high).map { Self.lanczos((Double($0) + 0.5 - middle) / factor) }
      first.append(low)
      counts.append(high - low)
      for (tap, weight) in Self.whole(exact).enumerated() { weights[index * taps + tap] = weight }
    }
    (self.first, self.counts, self.weights) = (first, counts, weights)
  }

  /// Lanczos3 reaches three lobes to either side.
  private static let lobes = 3.0

  private static func lanczos(_ x: Double) -> Double {
    guard abs(x) < lobes else { return 0 }
    guard abs(x) > 1e-9 else { return 1 }
    let angle = Double.pi * x
    return lobes * sin(angle) * sin(angle / lobes) / (angle * angle)
  }

  /// Weights as whole numbers. What rounding left over goes to the largest: plain areas stay exactly what they are.
  private static func whole(_ exact: [Double]) -> [Int16] {
    let unit = Double(1 << weightBits)
    let sum = exact.reduce(0, +)
    var weights = exact.map { Int(($0 / sum * unit).rounded()) }
    let largest = weights.indices.max { weights[$0] < weights[$1] } ?? 0
    weights[largest] += 1 << weightBits - weights.reduce(0, +)
    // Below 2 each: at the narrowest window the pixel in its middle has nearly all of the weight.
    return weights.map { Int16(clamping: $0) }
  }
}
