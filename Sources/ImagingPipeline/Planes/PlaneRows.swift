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
  /// The sums of the columns of a box. Owned; freed by `deinit`.
  private let sums: UnsafeMutablePointer<Int32>

  /// The reduction left for Lanczos3; box averages handle larger ones. It is libvips's for photographs, and half of that
  /// of `WeightedRows`: fewer bytes at the same likeness (docs/decisions/036-planes.md).
  private static let leastRest = 2.0
  /// The maximum side of a box: its sum of values of 14 bits must fit into an `Int32`.
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
    sums = .allocate(capacity: plane.size.width)
  }

  deinit { sums.deallocate() }

  /// Writes a row of `size.width` values.
  ///
  /// - Parameter y: The row, below `size.height`.
  func read(_ y: Int, into row: UnsafeMutablePointer<Int16>) {
    if plane.depth > 8 {
      read(y, of: UInt16.self, into: row)
    } else {
      read(y, of: UInt8.self, into: row)
    }
  }

  @inline(__always)
  private func read<Sample: FixedWidthInteger & UnsignedInteger & BitwiseCopyable>(
    _ y: Int, of: Sample.Type, into row: UnsafeMutablePointer<Int16>
  ) {
    let shift = Int16(Self.bits - plane.depth)
    let width = plane.size.width
    func samples(_ line: Int) -> UnsafePointer<Sample> {
      (plane.start + line &* plane.stride).assumingMemoryBound(to: Sample.self)
    }
    guard box.width > 1 || box.height > 1 else {
      let samples = samples(y)
      for x in 0..<width { row[x] = Int16(truncatingIfNeeded: samples[x]) &<< shift }
      return
    }
    let lines = y * box.height..<min((y + 1) * box.height, plane.size.height)
    sums.initialize(repeating: 0, count: width)
    for line in lines {
      let samples = samples(line)
      for x in 0..<width { sums[x] &+= Int32(truncatingIfNeeded: samples[x]) }
    }
    let unit = Float(1 << shift)
    for x in 0..<size.width {
      let start = x &* box.width
      let end = min(start &+ box.width, width)
      var sum: Int32 = 0
      for column in start..<end { sum &+= sums[column] }
      row[x] = Int16(
        (Float(sum) * unit / Float((end &- start) &* lines.count)).rounded(.toNearestOrEven))
    }
  }
}
