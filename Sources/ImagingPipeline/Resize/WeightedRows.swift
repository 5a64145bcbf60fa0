// WeightedRows: rows for the resampler, premultiplied by alpha and box-averaged.

import Model

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
  /// The maximum side of a box: a sum of `maximumBoxSide` times `maximumBoxSide` values of 14 bits must fit into an
  /// `Int32`.
  private static let maximumBoxSide = 256

  /// Starts at the top row.
  ///
  /// - Parameters:
  ///   - image: An image of 1–4 bands with 8 or 16 bits each.
  ///   - target: The size that the image is reduced to.
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
