// LanczosAxis: the Lanczos3 windows and weights of a reduction along one axis, and its vertical
// pass.

import CVectors
import Glibc

/// One axis of a resize with Lanczos3: a window of source pixels for each result pixel, with a
/// weight for each source pixel. When reducing, the kernel is as wide as the factor; when
/// enlarging, it interpolates.
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
    let taps = (maximum + tapsMultiple - 1) / tapsMultiple * tapsMultiple
    var first: [Int] = []
    var counts: [Int] = []
    first.reserveCapacity(target)
    counts.reserveCapacity(target)
    var weights = [Int16](repeating: 0, count: target * taps)
    weights.withUnsafeMutableBufferPointer { weights in
      withUnsafeTemporaryAllocation(of: Double.self, capacity: maximum) { exact in
        let kernel = LanczosKernel(width: width)
        for index in 0..<target {
          let middle = start + (Double(index) + 0.5) * factor
          // The pixels whose centres are within reach; at least the pixel that contains the centre.
          let low = min(max(0, Int(middle - reach + 0.5)), source - 1)
          let high = min(
            max(low + 1, Int(middle + reach + 0.5)), source, low + maximum)
          kernel.write(
            from: Double(low) + 0.5 - middle,
            into: UnsafeMutableBufferPointer(rebasing: exact[..<(high - low)]))
          first.append(low)
          counts.append(high - low)
          Self.round(
            UnsafeBufferPointer(rebasing: exact[..<(high - low)]),
            into: UnsafeMutableBufferPointer(
              rebasing: weights[index * taps..<index * taps + high - low]))
        }
      }
    }
    self.taps = taps
    self.first = first
    self.counts = counts
    self.weights = weights
  }

  /// The lobes of Lanczos3 on either side.
  fileprivate static let lobes = 3.0

  /// Writes weights as integers. The rounding error goes to the largest weight, so uniform areas
  /// stay exactly the same.
  private static func round(
    _ exact: UnsafeBufferPointer<Double>, into weights: UnsafeMutableBufferPointer<Int16>
  ) {
    let unit = Double(1 << weightBits) / exact.reduce(0, +)
    var rest = 1 << weightBits
    var largest = 0
    for (tap, weight) in exact.enumerated() {
      // Away from zero at a half, without a call of libm.
      let scaled = weight * unit
      let whole = Int(scaled < 0 ? scaled - 0.5 : scaled + 0.5)
      rest -= whole
      // Each weight is below 2: in the narrowest window the centre pixel has nearly all of the
      // weight.
      weights[tap] = Int16(clamping: whole)
      if weights[tap] > weights[largest] { largest = tap }
    }
    weights[largest] = Int16(clamping: Int(weights[largest]) + rest)
  }
}

/// The kernel of Lanczos3 at equal distances.
private struct LanczosKernel {
  private let width: Double
  /// The rotations by which the angles of the kernel's two sines grow from one source pixel to the
  /// next.
  private let fast: Rotation
  private let slow: Rotation

  /// The sine and the cosine of an angle.
  private struct Rotation {
    var sine: Double
    var cosine: Double

    init(_ angle: Double) { (sine, cosine) = (sin(angle), cos(angle)) }

    /// Adds an angle.
    mutating func turn(by other: Rotation) {
      (sine, cosine) = (
        sine * other.cosine + cosine * other.sine, cosine * other.cosine - sine * other.sine
      )
    }
  }

  /// - Parameter width: The source pixels of a lobe, at least 1.
  init(width: Double) {
    self.width = width
    fast = Rotation(Double.pi / width)
    slow = Rotation(Double.pi / width / LanczosAxis.lobes)
  }

  /// Writes the values at distances from the middle that grow by 1. A sum of angles takes a
  /// fraction of the time of a sine, and is off by less than 1e-9.
  ///
  /// - Parameter distance: The first distance, in source pixels.
  func write(from distance: Double, into values: UnsafeMutableBufferPointer<Double>) {
    let lobes = LanczosAxis.lobes
    var quick = Rotation(Double.pi * distance / width)
    var lazy = Rotation(Double.pi * distance / width / lobes)
    for index in values.indices {
      let x = (distance + Double(index)) / width
      let angle = Double.pi * x
      values[index] =
        abs(x) >= lobes ? 0 : abs(x) < 1e-5 ? 1 : lobes * quick.sine * lazy.sine / (angle * angle)
      quick.turn(by: fast)
      lazy.turn(by: slow)
    }
  }
}

extension LanczosAxis {
  /// The values that are summed up at a time; their sums stay in registers. Rows have a whole
  /// number of these.
  static let chunk = 16

  /// Two rows of a window.
  private struct RowPair {
    let upper: UnsafeRawPointer
    let lower: UnsafeRawPointer
    /// The weights of both rows in turn.
    let weights: SIMD8<Int16>
  }

  /// Writes the weighted sums of a window's rows. For an axis with an even number of `taps`.
  ///
  /// - Parameters:
  ///   - rows: The last `taps` rows; row y is at index y modulo `taps`.
  ///   - count: The number of values in a row that count.
  ///   - line: Receives the sums, in the format of a row.
  func addUp(
    _ y: Int, of rows: UnsafePointer<Int16>, stride: Int, count: Int,
    into line: UnsafeMutablePointer<Int16>
  ) {
    // The number of weights is even; an excess row has the weight 0.
    let pairCount = (counts[y] + 1) / 2
    let line = UnsafeMutableRawPointer(line)
    withUnsafeTemporaryAllocation(of: RowPair.self, capacity: pairCount) { pairs in
      weights.withUnsafeBytes { bytes in
        guard let start = bytes.baseAddress else { return }
        for index in 0..<pairCount {
          func row(_ more: Int) -> UnsafeRawPointer {
            UnsafeRawPointer(rows + (first[y] + 2 * index + more) % taps * stride)
          }
          pairs.initializeElement(
            at: index,
            to: RowPair(
              upper: row(0), lower: row(1),
              weights: Self.pair(of: start + (y * taps + 2 * index) * 2)))
        }
      }
      for offset in Swift.stride(from: 0, to: count &* 2, by: Self.chunk &* 2) {
        Self.addUp(UnsafeBufferPointer(pairs), from: offset, to: line + offset)
      }
    }
  }

  /// Sums up `chunk` values of each row.
  ///
  /// - Parameter offset: The first value, in bytes from the start of a row.
  @inline(__always)
  private static func addUp(
    _ pairs: UnsafeBufferPointer<RowPair>, from offset: Int, to line: UnsafeMutableRawPointer
  ) {
    typealias Values = SIMD8<Int16>
    let half = SIMD4<Int32>(repeating: 1 << (weightBits - 1))
    var sums = (half, half, half, half)
    for pair in pairs {
      let (upper, lower) = (pair.upper + offset, pair.lower + offset)
      let left = (upper.loadUnaligned(as: Values.self), lower.loadUnaligned(as: Values.self))
      let right = (
        upper.loadUnaligned(fromByteOffset: 16, as: Values.self),
        lower.loadUnaligned(fromByteOffset: 16, as: Values.self)
      )
      sums.0 &+= pictor_vectors_multiply_add(
        pictor_vectors_interleave_low(left.0, left.1), pair.weights)
      sums.1 &+= pictor_vectors_multiply_add(
        pictor_vectors_interleave_high(left.0, left.1), pair.weights)
      sums.2 &+= pictor_vectors_multiply_add(
        pictor_vectors_interleave_low(right.0, right.1), pair.weights)
      sums.3 &+= pictor_vectors_multiply_add(
        pictor_vectors_interleave_high(right.0, right.1), pair.weights)
    }
    func store(_ low: SIMD4<Int32>, _ high: SIMD4<Int32>, at place: Int) {
      let values = SIMD8(lowHalf: low, highHalf: high) &>> Int32(weightBits)
      line.storeBytes(of: Values(truncatingIfNeeded: values), toByteOffset: place, as: Values.self)
    }
    store(sums.0, sums.1, at: 0)
    store(sums.2, sums.3, at: 16)
  }

  /// Returns two adjacent weights in turn.
  @inline(__always)
  static func pair(of weights: UnsafeRawPointer) -> SIMD8<Int16> {
    unsafeBitCast(
      SIMD4<Int32>(repeating: weights.loadUnaligned(as: Int32.self)), to: SIMD8<Int16>.self)
  }
}
