// Resampler: reduces images with Lanczos3 in integer arithmetic, row by row, on the calling thread.

import CVectors
import CVips
import Model

/// A reduction of an image to 8 bits per band. Intermediate values have six more bits, so that no value is rounded
/// twice. Colours are premultiplied by alpha until they are written.
struct Resampler: ~Copyable {
  private let bands: Int
  private let hasAlpha: Bool
  private let input: WeightedRows
  private let target: PixelSize
  private let across: LanczosAxis
  private let down: LanczosAxis
  /// The number of values in a row of `rows`. Rows are a whole number of chunks (`LanczosAxis`), with room to read
  /// 4 values after the pixel that follows the last one.
  private let stride: Int
  /// The last `down.taps` source rows; row y is stored at index y modulo `down.taps`. Owned; freed
  /// by `deinit`.
  private let rows: UnsafeMutablePointer<Int16>
  /// The vertically reduced row, in the format of `rows`. Owned; freed by `deinit`.
  private let line: UnsafeMutablePointer<Int16>

  /// Prepares a reduction.
  ///
  /// - Parameters:
  ///   - image: An image of 1–4 bands with 8 or 16 bits each.
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
    stride =
      ((input.size.width + 1) * bands + 4 + LanczosAxis.chunk - 1) / LanczosAxis.chunk
      * LanczosAxis.chunk
    self.rows = .allocate(capacity: stride * down.taps)
    self.rows.initialize(repeating: 0, count: stride * down.taps)
    line = .allocate(capacity: stride)
    line.initialize(repeating: 0, count: stride)
  }

  deinit {
    rows.deallocate()
    line.deallocate()
  }

  /// Writes rows of the result, from top to bottom.
  ///
  /// - Parameters:
  ///   - lines: The rows; `nil`: all.
  ///   - write: Receives each row of the result, `target.width × bands` bytes; valid during the call.
  func run(
    _ lines: Range<Int>? = nil,
    _ write: (_ y: Int, UnsafePointer<UInt8>) throws(ImageError) -> Void
  ) throws(ImageError) {
    // Each pixel is written as 4 bytes; the next pixel overwrites the excess.
    let result = UnsafeMutablePointer<UInt8>.allocate(capacity: target.width * bands + 4)
    defer { result.deallocate() }
    let lines = lines ?? 0..<target.height
    var next = lines.isEmpty ? 0 : down.first[lines.lowerBound]
    for y in lines {
      while next < down.first[y] + down.counts[y] {
        try input.read(next, into: rows + next % down.taps * stride)
        next += 1
      }
      down.addUp(y, of: rows, stride: stride, count: input.size.width * bands, into: line)
      reduceAcross(to: result)
      try write(y, result)
    }
  }

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
            LanczosAxis.pair(of: weights + tap &* 2))
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
