// ScaledJPEGDecoder: decodes a JPEG directly at one to four eighths of its size.

import Core

/// A decoder for the most common kinds of JPEG, grey or YCbCr: in one scan, and progressive.
///
/// libjpeg decodes all coefficients of a block into a buffer and transforms the buffer. This
/// decoder skips the coefficients that the reduced image cannot show, several at a time, and sums
/// up the others immediately. Of a progressive JPEG the check for damage has to walk over all codes
/// anyway, and keeps the coefficients that the reduced image shows.
///
/// Buffers are sized by the header and accessed only within bounds, for any bytes that follow.
/// Damaged files and other kinds are left to libjpeg.
public struct ScaledJPEGDecoder: ~Copyable {
  /// The size of the reduced image: eighths of the full size, rounded up.
  public let size: PixelSize
  /// The size of the full image.
  public var sourceSize: PixelSize { frame.size }
  /// The bands of the reduced image: 1 for grey or 3 for RGB.
  public var bands: Int { frame.components.count }

  private let frame: JPEGScanFrame
  /// The codes of a JPEG in one scan; `nil` for a progressive one, whose coefficients `frame` has.
  private let scan: JPEGFrame?
  /// The basis of each component.
  private let bases: [JPEGBasis]
  /// One decoder for each component of a JPEG in one scan. Owned; freed by `deinit`.
  private let decoders: UnsafeMutablePointer<JPEGComponentDecoder>
  /// The number of units across and down; a unit has `grid.blocks` blocks of the largest
  /// component.
  private let units: (across: Int, down: Int)
  /// The size of a unit in reduced pixels.
  private let unit: (width: Int, height: Int)
  /// A row of units of each component, at the reduced image's resolution. Owned; freed by `deinit`.
  private let planes: UnsafeMutablePointer<Float>

  /// Prepares decoding, and reads all scans of a progressive JPEG.
  ///
  /// - Parameter eighths: How much of each side is left, in eighths: 1–4.
  /// - Returns: `nil` if this decoder does not support the JPEG, or a progressive one is damaged.
  public init?(_ source: UnsafeRawBufferPointer, eighths: Int) {
    let scan = JPEGFrame(source)
    guard let frame = scan?.sizes ?? JPEGCheck.coefficients(of: source, eighths: eighths) else {
      return nil
    }
    let grid = frame.grid
    var bases: [JPEGBasis] = []
    for (index, component) in frame.components.enumerated() {
      guard let side = frame.side(of: component, eighths: eighths),
        let factors = scan?.components[index].quantization ?? component.quantization
      else { return nil }
      bases.append(JPEGBasis(across: side.across, down: side.down, quantization: factors))
    }
    self.frame = frame
    self.scan = scan
    self.bases = bases
    decoders = .allocate(capacity: bases.count)
    if let scan {
      for (index, basis) in bases.enumerated() {
        (decoders + index).initialize(
          to: JPEGComponentDecoder(scan.components[index], basis: basis))
      }
    }
    size = frame.reduced(eighths: eighths)
    units = (grid.across, grid.down)
    unit = (grid.blocks.across * eighths, grid.blocks.down * eighths)
    let count = units.across * unit.width * unit.height * frame.components.count
    planes = .allocate(capacity: count)
    planes.initialize(repeating: 0, count: count)
  }

  deinit {
    if scan != nil { decoders.deinitialize(count: frame.components.count) }
    decoders.deallocate()
    planes.deallocate()
  }

  /// Decodes the image.
  ///
  /// - Parameter write: Receives each row, `size.width × bands` bytes, from top to bottom; valid
  ///   during the call.
  /// - Returns: Whether the data is complete and valid. If not, discard the rows written.
  public func run<Failure: Error>(
    _ source: UnsafeRawBufferPointer,
    write: (_ y: Int, UnsafePointer<UInt8>) throws(Failure) -> Void
  ) throws(Failure) -> Bool {
    guard var bits = JPEGBits(source, at: scan?.start ?? 0) else { return false }
    // Each pixel is written as 4 bytes; the next pixel overwrites the excess.
    let row = UnsafeMutablePointer<UInt8>.allocate(capacity: size.width * bands + 4)
    defer { row.deallocate() }
    let planeSize = planeStride * unit.height
    var (done, restarts) = (0, 0)
    if scan != nil { for index in 0..<bands { decoders[index].mean = 0 } }
    for unitRow in 0..<units.down {
      if let scan {
        guard decodeUnits(of: scan, &bits, &done, &restarts) else { return false }
      } else {
        for index in 0..<bands { paint(index, unitRow: unitRow, to: planes + index * planeSize) }
      }
      let top = unitRow * unit.height
      for y in top..<min(top + unit.height, size.height) {
        let light = UnsafePointer(planes + (y - top) * planeStride)
        JPEGRow.paint(
          light, colours: bands == 3 ? (light + planeSize, light + 2 * planeSize) : nil,
          width: size.width, into: row)
        try write(y, row)
      }
    }
    // The end marker must follow the last unit exactly; libjpeg decides about other files.
    return scan == nil || bits.pass(0xd9)
  }

  /// The number of values from one row of `planes` to the next.
  private var planeStride: Int { units.across * unit.width }

  /// Decodes a row of units.
  ///
  /// - Parameters:
  ///   - done: The units since the last restart marker.
  ///   - restarts: The restart markers so far.
  /// - Returns: Whether the codes are valid.
  private func decodeUnits(
    of scan: JPEGFrame, _ bits: inout JPEGBits, _ done: inout Int, _ restarts: inout Int
  ) -> Bool {
    for column in 0..<units.across {
      if scan.restartInterval > 0 && done == scan.restartInterval {
        guard bits.pass(0xd0 + UInt8(restarts % 8)) else { return false }
        done = 0
        restarts += 1
        for index in 0..<bands { decoders[index].mean = 0 }
      }
      for index in 0..<bands {
        let corner = index * planeStride * unit.height + column * unit.width
        guard decoders[index].decodeUnit(&bits, to: planes + corner, stride: planeStride) else {
          return false
        }
      }
      done += 1
    }
    return !bits.isPastEnd
  }

  /// Computes a progressive component's blocks in a row of units.
  private func paint(_ index: Int, unitRow: Int, to plane: UnsafeMutablePointer<Float>) {
    guard let store = frame.components[index].coefficients else { return }
    let sum = JPEGBlockSum(bases[index])
    let (across, down) = bases[index].size
    let rows = frame.blocks(of: frame.components[index]).down
    withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 64) { words in
      guard let words = words.baseAddress else { return }
      for blockRow in 0..<rows {
        let target = plane + blockRow * down * planeStride
        for column in 0..<store.columns {
          let block = store.block(column: column, row: unitRow * rows + blockRow)
          var found = 0
          for place in 1..<store.kept where block[place] != 0 {
            let number = Self.clamped(block[place], to: Self.highest.detail)
            words[found] = JPEGCoefficient.packed(number, at: place)
            found &+= 1
          }
          sum.paint(
            mean: Self.clamped(block[0], to: Self.highest.mean), words, found,
            to: target + column * across, stride: planeStride)
        }
      }
    }
  }

  /// The highest DC and AC coefficients of 8-bit samples (T.81, F.1.2), on which `JPEGRow` relies.
  /// Damage may exceed them.
  private static let highest: (mean: Int, detail: Int) = (2_047, 1_023)

  @inline(__always)
  private static func clamped(_ coefficient: Int16, to highest: Int) -> Int {
    min(max(Int(coefficient), -highest), highest)
  }
}
