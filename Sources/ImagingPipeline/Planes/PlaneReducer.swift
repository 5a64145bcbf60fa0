// PlaneReducer: reduces one plane with Lanczos3 in integer arithmetic, row by row, on the calling
// thread.

import CVectors
import Core

/// A reduction of one plane, as `Resampler` does it with interleaved bands. Results keep 14 bits,
/// because they are rounded only after the conversion to RGB. A colour plane with fewer samples
/// than the result is enlarged.
struct PlaneReducer: ~Copyable {
  private let input: PlaneRows
  private let target: PixelSize
  private let across: LanczosAxis
  private let down: LanczosAxis
  /// The number of values in a row of `rows`: a whole number of chunks (`LanczosAxis`), with zeros
  /// for the weights after the last value.
  private let stride: Int
  /// The last `down.taps` rows; row y is stored at index y modulo `down.taps`. Owned; freed by
  /// `deinit`.
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
  ///   - window: The visible part, in samples.
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

  /// Writes a row of the result, `target.width` values with 14 bits, which may be below 0 or above
  /// the highest.
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

/// Converts a plane's rows to `Int16` with 14 bits a sample, so that one loop serves every depth.
/// A sample of 8 bits gets `fractionBits` more.
struct PlaneRows: ~Copyable {
  static let bits = 14
  static let fractionBits = bits - 8

  private let plane: Plane
  /// The samples averaged into one, across and down; the last box may have fewer.
  let box: (width: Int, height: Int)
  /// The size after averaging.
  let size: PixelSize
  /// The sums of the columns of a box, of 16 bits for samples of 8 bits and of 32 bits for deeper
  /// ones. Owned; freed by `deinit`.
  private let sums: UnsafeMutableRawPointer

  /// The reduction left for Lanczos3; box averages handle larger ones. It is libvips's for
  /// photographs. WebPs to 300 pixels take 8,449 bytes with 2 and 8,524 with 4, at the same SSIM.
  private static let leastRest = 2.0
  /// The maximum side of a box: the sum of a column of 8 bits fits into 16 bits, and of a box of 14
  /// bits into 30.
  private static let maximumBoxSide = 256

  init(of plane: Plane, for target: PixelSize) {
    self.plane = plane
    func box(from source: Int, to target: Int) -> Int {
      min(max(1, Int(Double(source) / Double(target) / Self.leastRest)), Self.maximumBoxSide)
    }
    let box = (
      width: box(from: plane.size.width, to: target.width),
      height: box(from: plane.size.height, to: target.height)
    )
    self.box = box
    size = PixelSize(
      width: (plane.size.width + box.width - 1) / box.width,
      height: (plane.size.height + box.height - 1) / box.height)
    sums = .allocate(byteCount: plane.size.width * 4, alignment: 16)
  }

  deinit { sums.deallocate() }

  /// Writes a row of `size.width` values.
  ///
  /// - Parameter y: The row, below `size.height`.
  func read(_ y: Int, into row: UnsafeMutablePointer<Int16>) {
    if plane.depth > 8 {
      read(y, of: UInt16.self, sum: UInt32.self, into: row)
    } else {
      read(y, of: UInt8.self, sum: UInt16.self, into: row)
    }
  }

  @inline(__always)
  private func read<
    Sample: FixedWidthInteger & UnsignedInteger & BitwiseCopyable,
    Sum: FixedWidthInteger & UnsignedInteger & BitwiseCopyable
  >(_ y: Int, of: Sample.Type, sum: Sum.Type, into row: UnsafeMutablePointer<Int16>) {
    let width = plane.size.width
    func samples(_ line: Int) -> UnsafePointer<Sample> {
      (plane.start + line &* plane.stride).assumingMemoryBound(to: Sample.self)
    }
    guard box.width > 1 || box.height > 1 else {
      let shift = Int16(Self.bits - plane.depth)
      let samples = samples(y)
      for x in 0..<width { row[x] = Int16(truncatingIfNeeded: samples[x]) &<< shift }
      return
    }
    let sums = sums.bindMemory(to: Sum.self, capacity: width)
    let lines = y * box.height..<min((y + 1) * box.height, plane.size.height)
    let first = samples(lines.lowerBound)
    for x in 0..<width { sums[x] = Sum(truncatingIfNeeded: first[x]) }
    for line in lines.dropFirst() {
      let samples = samples(line)
      for x in 0..<width { sums[x] &+= Sum(truncatingIfNeeded: samples[x]) }
    }
    switch box.width {
    // The compiler unrolls these.
    case 1: average(sums, by: 1, lines: lines.count, into: row)
    case 2: average(sums, by: 2, lines: lines.count, into: row)
    case 3: average(sums, by: 3, lines: lines.count, into: row)
    case 4: average(sums, by: 4, lines: lines.count, into: row)
    default: average(sums, by: box.width, lines: lines.count, into: row)
    }
  }

  /// Writes the averages of boxes of columns.
  ///
  /// - Parameters:
  ///   - sums: The sum of each column.
  ///   - columns: The columns of a box; the last one may have fewer.
  ///   - lines: The samples in a column.
  @inline(__always)
  private func average<Sum: FixedWidthInteger & UnsignedInteger>(
    _ sums: UnsafePointer<Sum>, by columns: Int, lines: Int, into row: UnsafeMutablePointer<Int16>
  ) {
    let unit = Float(1 << (Self.bits - plane.depth))
    // Up to 2^22, this sum rounds to the nearest integer, a half to the even one, and has it in its
    // lowest bits (IEEE 754).
    let rounding: Float = 0x1.8p23
    func average(from start: Int, count: Int) -> Int16 {
      var sum: UInt32 = 0
      for column in start..<start &+ count { sum &+= UInt32(truncatingIfNeeded: sums[column]) }
      let exact = Float(Int32(bitPattern: sum)) * unit / Float(count &* lines)
      return Int16(truncatingIfNeeded: (exact + rounding).bitPattern)
    }
    let whole = plane.size.width / columns
    for x in 0..<whole { row[x] = average(from: x &* columns, count: columns) }
    if whole < size.width {
      row[whole] = average(from: whole &* columns, count: plane.size.width - whole * columns)
    }
  }
}
