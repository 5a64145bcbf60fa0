// LanczosAxis+Rows: the vertical pass of a reduction: weighted sums of rows.

import CVectors

extension LanczosAxis {
  /// The values that are summed up at a time; their sums stay in registers. Rows have a whole number of these.
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
  ///   - y: The window.
  ///   - rows: The last `taps` rows; row y is at index y modulo `taps`.
  ///   - stride: The number of values from one row to the next.
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
