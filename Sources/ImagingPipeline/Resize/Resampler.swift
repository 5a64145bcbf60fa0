// Resampler: reduces images with Lanczos3 in integer arithmetic, row by row, on the calling thread.

import CVectors
import CVips
import Model

/// A reduction of an image with 8 bits per band. Intermediate values have six more bits, so that no
/// value is rounded twice. Colours are premultiplied by alpha until they are written.
struct Resampler: ~Copyable {
  private let bands: Int
  private let hasAlpha: Bool
  private let input: WeightedRows
  private let target: PixelSize
  private let across: LanczosAxis
  private let down: LanczosAxis
  /// The number of values in a row of `rows`. Rows are a whole number of `chunk`s, with room to read
  /// 4 values after the pixel that follows the last one.
  private let stride: Int
  /// The last `down.taps` source rows; row y is stored at index y modulo `down.taps`. Owned; freed
  /// by `deinit`.
  private let rows: UnsafeMutablePointer<Int16>
  /// The rows of the current window, two at a time. Owned; freed by `deinit`.
  private let pairs: UnsafeMutablePointer<RowPair>
  /// The vertically reduced row, in the format of `rows`. Owned; freed by `deinit`.
  private let line: UnsafeMutablePointer<Int16>

  /// The values that are summed up vertically at a time; their sums stay in registers.
  private static let chunk = 16

  /// Two rows of a window.
  private struct RowPair {
    let upper: UnsafeRawPointer
    let lower: UnsafeRawPointer
    /// The weights of both rows in turn.
    let weights: SIMD8<Int16>
  }

  /// Prepares a reduction.
  ///
  /// - Parameters:
  ///   - image: An image of 1–4 bands with 8 bits each.
  ///   - target: The size of the result; neither side is longer than the window's.
  ///   - window: The visible part of the image; `nil` for the whole image.
  init(
    of image: borrowing Image, to target: PixelSize, showing window: Window? = nil
  ) throws(ImageError) {
    input = try WeightedRows(of: image, for: target)
    let window = window ?? Window(image.size)
    bands = image.bands
    hasAlpha = image.hasAlpha
    self.target = target
    let columns = Double(input.box.width)
    let rows = Double(input.box.height)
    across = LanczosAxis(
      source: input.size.width, start: window.x / columns, span: window.width / columns,
      target: target.width)
    down = LanczosAxis(
      source: input.size.height, start: window.y / rows, span: window.height / rows,
      target: target.height)
    stride = ((input.size.width + 1) * bands + 4 + Self.chunk - 1) / Self.chunk * Self.chunk
    self.rows = .allocate(capacity: stride * down.taps)
    self.rows.initialize(repeating: 0, count: stride * down.taps)
    pairs = .allocate(capacity: down.taps / 2)
    line = .allocate(capacity: stride)
    line.initialize(repeating: 0, count: stride)
  }

  deinit {
    rows.deallocate()
    pairs.deallocate()
    line.deallocate()
  }

  /// Reads all source rows and writes all result rows, from top to bottom.
  ///
  /// - Parameter write: Receives each row of the result, `target.width × bands` bytes; valid during
  ///   the call.
  func run(_ write: (_ y: Int, UnsafePointer<UInt8>) throws(ImageError) -> Void)
    throws(ImageError)
  {
    // Each pixel is written as 4 bytes; the next pixel overwrites the excess.
    let result = UnsafeMutablePointer<UInt8>.allocate(capacity: target.width * bands + 4)
    defer { result.deallocate() }
    var next = 0
    for y in 0..<target.height {
      while next < down.first[y] + down.counts[y] {
        try input.read(next, into: rows + next % down.taps * stride)
        next += 1
      }
      reduceDown(y)
      reduceAcross(to: result)
      try write(y, result)
    }
  }

  // MARK: Vertical

  /// Computes the weighted sums of a window's rows into `line`. A target has at least one pixel, so there are weights.
  private func reduceDown(_ y: Int) {
    // The number of weights is even; an excess row has the weight 0.
    let count = (down.counts[y] + 1) / 2
    down.weights.withUnsafeBytes { bytes in
      guard let weights = bytes.baseAddress else { return }
      for index in 0..<count {
        func row(_ more: Int) -> UnsafeRawPointer {
          UnsafeRawPointer(rows + (down.first[y] + 2 * index + more) % down.taps * stride)
        }
        let offset = (y * down.taps + 2 * index) * 2
        (pairs + index).initialize(
          to: RowPair(
            upper: row(0), lower: row(1), weights: Self.pair(of: weights + offset)))
      }
    }
    let line = UnsafeMutableRawPointer(line)
    for start in Swift.stride(from: 0, to: input.size.width * bands, by: Self.chunk) {
      addUp(pairs: count, from: start &* 2, to: line + start &* 2)
    }
  }

  /// Sums up `chunk` values of each row of the window.
  ///
  /// - Parameter offset: The first value, in bytes from the start of a row.
  @inline(__always)
  private func addUp(pairs count: Int, from offset: Int, to line: UnsafeMutableRawPointer) {
    typealias Values = SIMD8<Int16>
    let half = SIMD4<Int32>(repeating: 1 << (LanczosAxis.weightBits - 1))
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
    func store(_ low: SIMD4<Int32>, _ high: SIMD4<Int32>, at place: Int) {
      let values = SIMD8(lowHalf: low, highHalf: high) &>> Int32(LanczosAxis.weightBits)
      line.storeBytes(of: Values(truncatingIfNeeded: values), toByteOffset: place, as: Values.self)
    }
    store(sums.0, sums.1, at: 0)
    store(sums.2, sums.3, at: 16)
  }

  /// Returns two adjacent weights in turn.
  @inline(__always)
  private static func pair(of weights: UnsafeRawPointer) -> SIMD8<Int16> {
    unsafeBitCast(
      SIMD4<Int32>(repeating: weights.loadUnaligned(as: Int32.self)), to: SIMD8<Int16>.self)
  }

  // MARK: Horizontal

  /// Computes a row of the result from `line`.
  private func reduceAcross(to result: UnsafeMutablePointer<UInt8>) {
    let bands = bands
    let taps = across.taps
    let hasAlpha = hasAlpha
    let out = UnsafeMutableRawPointer(result)
    across.weights.withUnsafeBytes { bytes in
      guard let start = bytes.baseAddress else { return }
      for x in 0..<target.width {
        let pixels = UnsafeRawPointer(line + across.first[x] &* bands)
        let weights = start + x &* taps &* 2
        var sum = SIMD4<Int32>(repeating: 1 << (LanczosAxis.weightBits - 1))
        // Two pixels at a time; an excess pixel has the weight 0. Always reads four values of each:
        // excess values are not stored, and the buffer has room after the last pixel.
        for tap in Swift.stride(from: 0, to: across.counts[x], by: 2) {
          let place = pixels + tap &* bands &* 2
          sum &+= pictor_vectors_multiply_add(
            pictor_vectors_interleave_low(
              Self.four(place), Self.four(place + bands &* 2)),
            Self.pair(of: weights + tap &* 2))
        }
        var value = sum &>> Int32(LanczosAxis.weightBits)
        if hasAlpha { value = Self.unweighted(value, alpha: bands - 1) }
        value =
          (value &+ (1 << (WeightedRows.fractionBits - 1))) &>> Int32(WeightedRows.fractionBits)
        let bytes = SIMD4<UInt8>(
          truncatingIfNeeded: value.clamped(lowerBound: .zero, upperBound: .init(repeating: 255)))
        out.storeBytes(of: bytes, toByteOffset: x &* bands, as: SIMD4<UInt8>.self)
      }
    }
  }

  /// Loads four values into the lower half.
  @inline(__always)
  private static func four(_ place: UnsafeRawPointer) -> SIMD8<Int16> {
    SIMD8(lowHalf: place.loadUnaligned(as: SIMD4<Int16>.self), highHalf: .zero)
  }

  /// Divides the colours of a pixel by its alpha; a transparent pixel becomes zero.
  @inline(__always)
  private static func unweighted(_ value: SIMD4<Int32>, alpha index: Int) -> SIMD4<Int32> {
    let alpha = value[index]
    let full: Int32 = 255 << WeightedRows.fractionBits
    if alpha == full { return value }
    // Alpha rounds to 0.
    guard alpha >= 1 << (WeightedRows.fractionBits - 1) else { return .zero }
    // Values are below 2^15 and thus exact as `Float`.
    let scale = Float(full) / Float(alpha)
    var result = SIMD4<Int32>((SIMD4<Float>(value) * scale).rounded(.toNearestOrEven))
    result[index] = alpha
    return result
  }
}
