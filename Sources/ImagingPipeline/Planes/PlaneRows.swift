// PlaneRows: the rows of a plane for its reduction, box-averaged.

import Model

/// Converts a plane's rows to `Int16`, with 14 bits a sample whatever its depth. 8 bits get `fractionBits` more.
struct PlaneRows: ~Copyable {
  static let bits = 14
  static let fractionBits = bits - 8

  private let plane: Plane
  /// The samples averaged into one, across and down; the last box may have fewer.
  let box: (width: Int, height: Int)
  /// The size after averaging.
  let size: PixelSize
  /// The sums of the columns of a box, of 16 bits for samples of 8 bits and of 32 bits for deeper ones. Owned; freed by
  /// `deinit`.
  private let sums: UnsafeMutableRawPointer

  /// The reduction left for Lanczos3; box averages handle larger ones. It is libvips's for
  /// photographs. WebPs to 300 pixels take 8,449 bytes with 2 and 8,524 with 4, at the same SSIM.
  private static let leastRest = 2.0
  /// The maximum side of a box: the sum of a column of 8 bits fits into 16 bits, and of a box of 14 bits into 30.
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
    // Up to 2^22, this sum rounds to the nearest integer, a half to the even one, and has it in its lowest bits (IEEE 754).
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
