// PlaneReducer: reduces one plane with Lanczos3 in integer arithmetic, row by row, on the calling thread.

import CVectors
import Model

/// A reduction of one plane, as `Resampler` does it with interleaved bands. Results keep 14 bits, because they are
/// rounded only after the conversion to RGB. A colour plane with fewer samples than the result is enlarged.
struct PlaneReducer: ~Copyable {
  private let input: PlaneRows
  private let target: PixelSize
  private let across: LanczosAxis
  private let down: LanczosAxis
  /// The number of values in a row of `rows`: a whole number of `chunk`s, with zeros for the weights after the last value.
  private let stride: Int
  /// The last `down.taps` rows; row y is stored at index y modulo `down.taps`. Owned; freed by `deinit`.
  private let rows: UnsafeMutablePointer<Int16>
  /// The vertically reduced row, in the format of `rows`. Owned; freed by `deinit`.
  private let line: UnsafeMutablePointer<Int16>
  /// The rows read so far.
  private var next = 0

  /// The values that are summed up vertically at a time; their sums stay in registers.
  private static let chunk = 16
  /// The values that are summed up horizontally at a time.
  private static let step = 8

  /// Prepares a reduction.
  ///
  /// - Parameters:
  ///   - plane: The samples.
  ///   - window: The visible part, in samples.
  ///   - target: The size of the result.
  init(of plane: Plane, showing window: Window, to target: PixelSize) {
    let covered = window.covered(of: plane.size)
    let window = window.within(covered)
    input = PlaneRows(of: plane.cut(covered), for: target)
    self.target = target
    let columns = Double(input.box.width)
    let lines = Double(input.box.height)
    across = LanczosAxis(
      source: input.size.width, start: window.x / columns, span: window.width / columns,
      target: target.width, tapsMultiple: Self.step)
    down = LanczosAxis(
      source: input.size.height, start: window.y / lines, span: window.height / lines,
      target: target.height)
    stride = (input.size.width + across.taps + Self.chunk - 1) / Self.chunk * Self.chunk
    rows = .allocate(capacity: stride * down.taps)
    rows.initialize(repeating: 0, count: stride * down.taps)
    line = .allocate(capacity: stride)
    line.initialize(repeating: 0, count: stride)
  }

  deinit {
    rows.deallocate()
    line.deallocate()
  }

  /// Writes a row of the result, `target.width` values with 14 bits, which may be below 0 or above the highest.
  ///
  /// - Parameter y: The row: 0 at the first call, then one more at each call.
  mutating func read(_ y: Int, into result: UnsafeMutablePointer<Int16>) {
    while next < down.first[y] + down.counts[y] {
      input.read(next, into: rows + next % down.taps * stride)
      next += 1
    }
    reduceDown(y)
    reduceAcross(to: result)
  }

  /// Computes the weighted sums of a window's rows into `line`.
  private func reduceDown(_ y: Int) {
    typealias Values = SIMD8<Int16>
    // The number of weights is even; an excess row has the weight 0.
    let count = (down.counts[y] + 1) / 2
    let half = SIMD4<Int32>(repeating: 1 << (LanczosAxis.weightBits - 1))
    let out = UnsafeMutableRawPointer(line)
    withUnsafeTemporaryAllocation(of: RowPair.self, capacity: count) { pairs in
      for index in 0..<count {
        func row(_ more: Int) -> UnsafeRawPointer {
          UnsafeRawPointer(rows + (down.first[y] + 2 * index + more) % down.taps * stride)
        }
        let weights = y * down.taps + 2 * index
        let (first, second) = (down.weights[weights], down.weights[weights + 1])
        pairs.initializeElement(
          at: index,
          to: RowPair(
            upper: row(0), lower: row(1),
            weights: [first, second, first, second, first, second, first, second]))
      }
      for offset in Swift.stride(from: 0, to: input.size.width &* 2, by: Self.chunk &* 2) {
        var sums = (half, half, half, half)
        for index in 0..<count {
          let pair = pairs[index]
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
        Self.store(sums.0, sums.1, at: out + offset)
        Self.store(sums.2, sums.3, at: out + offset + 16)
      }
    }
  }

  @inline(__always)
  private static func store(
    _ low: SIMD4<Int32>, _ high: SIMD4<Int32>, at place: UnsafeMutableRawPointer
  ) {
    let values = SIMD8(lowHalf: low, highHalf: high) &>> Int32(LanczosAxis.weightBits)
    place.storeBytes(of: SIMD8<Int16>(truncatingIfNeeded: values), as: SIMD8<Int16>.self)
  }

  /// Computes a row of the result from `line`.
  private func reduceAcross(to result: UnsafeMutablePointer<Int16>) {
    typealias Values = SIMD8<Int16>
    let taps = across.taps
    let line = UnsafeRawPointer(line)
    across.weights.withUnsafeBytes { weights in
      across.first.withUnsafeBufferPointer { first in
        guard let weights = weights.baseAddress else { return }
        for x in 0..<target.width {
          let values = line + first[x] &* 2
          let weights = weights + x &* taps &* 2
          var sums = SIMD4<Int32>(1 << (LanczosAxis.weightBits - 1), 0, 0, 0)
          for offset in Swift.stride(from: 0, to: taps &* 2, by: Self.step &* 2) {
            sums &+= pictor_vectors_multiply_add(
              (values + offset).loadUnaligned(as: Values.self),
              (weights + offset).loadUnaligned(as: Values.self))
          }
          result[x] = Int16(truncatingIfNeeded: sums.wrappedSum() &>> Int32(LanczosAxis.weightBits))
        }
      }
    }
  }

  /// Two rows of a window.
  private struct RowPair {
    let upper: UnsafeRawPointer
    let lower: UnsafeRawPointer
    /// The weights of both rows in turn.
    let weights: SIMD8<Int16>
  }
}
