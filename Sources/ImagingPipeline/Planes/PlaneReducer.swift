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
  /// The number of values in a row of `rows`: a whole number of chunks (`LanczosAxis`), with zeros for the weights after the last value.
  private let stride: Int
  /// The last `down.taps` rows; row y is stored at index y modulo `down.taps`. Owned; freed by `deinit`.
  private let rows: UnsafeMutablePointer<Int16>
  /// The vertically reduced row, in the format of `rows`. Owned; freed by `deinit`.
  private let line: UnsafeMutablePointer<Int16>
  /// The next row to read.
  private var next: Int

  /// The values that are summed up horizontally at a time.
  private static let step = 8

  /// Prepares a reduction.
  ///
  /// - Parameters:
  ///   - plane: The samples.
  ///   - window: The visible part, in samples.
  ///   - target: The size of the result.
  ///   - first: The first row of the result that is read.
  init(of plane: Plane, showing window: Window, to target: PixelSize, from first: Int = 0) {
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
    stride =
      (input.size.width + across.taps + LanczosAxis.chunk - 1) / LanczosAxis.chunk
      * LanczosAxis.chunk
    rows = .allocate(capacity: stride * down.taps)
    rows.initialize(repeating: 0, count: stride * down.taps)
    line = .allocate(capacity: stride)
    line.initialize(repeating: 0, count: stride)
    next = first < target.height ? down.first[first] : 0
  }

  deinit {
    rows.deallocate()
    line.deallocate()
  }

  /// Writes a row of the result, `target.width` values with 14 bits, which may be below 0 or above the highest.
  ///
  /// - Parameter y: The first row at the first call, then one more at each call.
  mutating func read(_ y: Int, into result: UnsafeMutablePointer<Int16>) {
    while next < down.first[y] + down.counts[y] {
      input.read(next, into: rows + next % down.taps * stride)
      next += 1
    }
    down.addUp(y, of: rows, stride: stride, count: input.size.width, into: line)
    reduceAcross(to: result)
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
}
