// Resampler: reduces images with Lanczos3 in integer arithmetic, row by row, on the calling thread.

import CVectors
import CVips
import Core

/// A reduction of an image to 8 bits per band. Intermediate values have six more bits, so that no
/// value is rounded twice. Colours are premultiplied by alpha until they are written.
struct Resampler: ~Copyable {
  private let bands: Int
  private let hasAlpha: Bool
  private let input: WeightedRows
  private let target: PixelSize
  private let across: LanczosAxis
  private let down: LanczosAxis
  /// The number of values in a row of `rows`. Rows are a whole number of chunks (`LanczosAxis`),
  /// with room to read 4 values after the pixel that follows the last one.
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
  ///   - write: Receives each row of the result, `target.width × bands` bytes; valid during the
  ///     call.
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

/// Converts rows of 8 or 16 bits per band to `Int16`: 8 bits and six fraction bits.
struct WeightedRows: ~Copyable {
  /// The fraction bits of a value.
  static let fractionBits = 6

  private let pixels: PixelRows
  private let source: PixelSize
  private let bands: Int
  private let hasAlpha: Bool
  /// Whether a band has 16 bits.
  private let isDeep: Bool
  /// The pixels averaged into one, across and down; the last box may have fewer.
  let box: (width: Int, height: Int)
  /// A row before averaging. Owned; freed by `deinit`.
  private let wide: UnsafeMutablePointer<Int16>
  /// The sums of the rows of a box. Owned; freed by `deinit`.
  private let sums: UnsafeMutablePointer<Int32>

  /// The size after averaging.
  let size: PixelSize

  /// The reduction left for Lanczos3. Box averages handle larger reductions, which bounds the work
  /// of Lanczos3 and the rows it needs at a time.
  private static let leastRest = 4.0
  /// The maximum side of a box: a sum of `maximumBoxSide` times `maximumBoxSide` values of 14 bits
  /// must fit into an `Int32`.
  private static let maximumBoxSide = 256

  /// Starts at the top row.
  ///
  /// - Parameter image: An image of 1–4 bands with 8 or 16 bits each.
  init(of image: borrowing Image, for target: PixelSize) throws(ImageError) {
    source = image.size
    bands = image.bands
    hasAlpha = image.hasAlpha
    isDeep = image.has16Bits
    func box(from source: Int, to target: Int) -> Int {
      min(max(1, Int(Double(source) / Double(target) / Self.leastRest)), Self.maximumBoxSide)
    }
    self.box = (
      box(from: source.width, to: target.width), box(from: source.height, to: target.height)
    )
    size = PixelSize(
      width: (source.width + self.box.width - 1) / self.box.width,
      height: (source.height + self.box.height - 1) / self.box.height)
    pixels = try PixelRows(of: image)
    wide = .allocate(capacity: source.width * bands)
    sums = .allocate(capacity: size.width * bands)
  }

  deinit {
    wide.deallocate()
    sums.deallocate()
  }

  /// Writes a row, `size.width × bands` values.
  ///
  /// - Parameter y: Any row at the first call, then the next at each call.
  func read(_ y: Int, into row: UnsafeMutablePointer<Int16>) throws(ImageError) {
    guard box.width > 1 || box.height > 1 else { return weigh(try pixels.row(y), into: row) }
    let lines = y * box.height..<min((y + 1) * box.height, source.height)
    sums.update(repeating: 0, count: size.width * bands)
    for line in lines {
      weigh(try pixels.row(line), into: wide)
      addUp()
    }
    for x in 0..<size.width {
      let columns = min(box.width, source.width - x * box.width)
      let scale = 1 / Float(columns * lines.count)
      for index in x * bands..<(x + 1) * bands {
        row[index] = Int16((Float(sums[index]) * scale).rounded(.toNearestOrEven))
      }
    }
  }

  /// Adds each box's part of `wide` to `sums`.
  private func addUp() {
    for x in 0..<size.width {
      let start = x * box.width
      let end = min((x + 1) * box.width, source.width)
      for band in 0..<bands {
        var sum: Int32 = 0
        for column in start..<end { sum &+= Int32(wide[column &* bands &+ band]) }
        sums[x &* bands &+ band] &+= sum
      }
    }
  }

  private func weigh(_ bytes: UnsafePointer<UInt8>, into row: UnsafeMutablePointer<Int16>) {
    guard !isDeep else {
      return weigh(UnsafeRawPointer(bytes).assumingMemoryBound(to: UInt16.self), into: row)
    }
    guard hasAlpha else {
      for index in 0..<source.width * bands {
        row[index] = Int16(truncatingIfNeeded: bytes[index]) &<< Self.fractionBits
      }
      return
    }
    for x in 0..<source.width {
      let start = x &* bands
      let alpha = UInt32(bytes[start &+ bands &- 1])
      for band in start..<start &+ bands &- 1 {
        // 64 / 255 in 65,536ths, rounded: full alpha gives exactly 64 times the value.
        row[band] = Int16(
          truncatingIfNeeded: (UInt32(bytes[band]) &* alpha &* 16_448 &+ 32_768) &>> 16)
      }
      row[start &+ bands &- 1] = Int16(truncatingIfNeeded: alpha) &<< Self.fractionBits
    }
  }

  /// Converts samples of 16 bits: full light becomes 255 with six fraction bits.
  private func weigh(_ samples: UnsafePointer<UInt16>, into row: UnsafeMutablePointer<Int16>) {
    // 255 × 64 / 65,535 in 65,536ths, rounded: exact for each value that 8 bits have.
    for index in 0..<source.width * bands {
      row[index] = Int16(
        truncatingIfNeeded: (UInt32(samples[index]) &* (255 << 6) &+ 32_768) &>> 16)
    }
    guard hasAlpha else { return }
    for x in 0..<source.width {
      let start = x &* bands
      let alpha = UInt32(samples[start &+ bands &- 1])
      for band in start..<start &+ bands &- 1 {
        row[band] = Int16(
          truncatingIfNeeded: (UInt32(truncatingIfNeeded: row[band]) &* alpha &+ 32_768) &>> 16)
      }
    }
  }
}
