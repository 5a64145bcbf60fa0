// ScaledJPEGDecoder: decodes a JPEG directly at one to four eighths of its size.

import Model

/// A decoder for the most common kind of JPEG.
///
/// libjpeg decodes all coefficients of a block into a buffer and transforms the buffer. This
/// decoder skips the coefficients that the reduced image cannot show, several at a time, and sums
/// up the others immediately.
///
/// Buffers are sized by the header and accessed only within bounds, for any bytes that follow.
/// Damaged files and other kinds are left to libjpeg.
public struct ScaledJPEGDecoder: ~Copyable {
  /// The size of the reduced image: eighths of the full size, rounded up.
  public let size: PixelSize
  /// The size of the full image.
  public var sourceSize: PixelSize { frame.sizes.size }
  /// The bands of the reduced image: 1 for grey or 3 for RGB.
  public var bands: Int { frame.components.count }

  let frame: JPEGFrame
  /// The basis of each component.
  let bases: [JPEGBasis]
  /// One decoder for each component. Owned; freed by `deinit`.
  private let decoders: UnsafeMutablePointer<JPEGComponentDecoder>
  /// The number of units across and down; a unit has `grid.blocks` blocks of the largest
  /// component.
  let units: (across: Int, down: Int)
  /// The size of a unit in reduced pixels.
  let unit: (width: Int, height: Int)
  /// A row of units of each component, at the reduced image's resolution. Owned; freed by `deinit`.
  private let planes: UnsafeMutablePointer<Float>

  /// Prepares decoding; `nil` if this decoder does not support the JPEG.
  ///
  /// - Parameter eighths: How much of each side is left, in eighths: 1–4.
  public init?(_ source: UnsafeRawBufferPointer, eighths: Int) {
    guard let frame = JPEGFrame(source) else { return nil }
    let grid = frame.sizes.grid
    var bases: [JPEGBasis] = []
    for (component, codes) in zip(frame.sizes.components, frame.components) {
      guard let side = frame.sizes.side(of: component, eighths: eighths) else { return nil }
      bases.append(
        JPEGBasis(across: side.across, down: side.down, quantization: codes.quantization))
    }
    self.frame = frame
    self.bases = bases
    decoders = .allocate(capacity: bases.count)
    for (index, basis) in bases.enumerated() {
      (decoders + index).initialize(to: JPEGComponentDecoder(frame.components[index], basis: basis))
    }
    size = frame.sizes.reduced(eighths: eighths)
    units = (grid.across, grid.down)
    unit = (grid.blocks.across * eighths, grid.blocks.down * eighths)
    let count = units.across * unit.width * unit.height * frame.components.count
    planes = .allocate(capacity: count)
    planes.initialize(repeating: 0, count: count)
  }

  deinit {
    decoders.deinitialize(count: frame.components.count)
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
    guard var bits = JPEGBits(source, at: frame.start) else { return false }
    // Each pixel is written as 4 bytes; the next pixel overwrites the excess.
    let row = UnsafeMutablePointer<UInt8>.allocate(capacity: size.width * bands + 4)
    defer { row.deallocate() }
    var done = 0
    var restarts = 0
    for index in 0..<bands { decoders[index].mean = 0 }
    for unitRow in 0..<units.down {
      for column in 0..<units.across {
        if frame.restartInterval > 0 && done == frame.restartInterval {
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
      guard !bits.isPastEnd else { return false }
      let top = unitRow * unit.height
      for y in top..<min(top + unit.height, size.height) {
        paint(y - top, into: row)
        try write(y, row)
      }
    }
    // The end marker must follow the last unit exactly; libjpeg decides about other files.
    return bits.pass(0xd9)
  }

  /// The number of values from one row of `planes` to the next.
  private var planeStride: Int { units.across * unit.width }

  /// Writes a row of pixels.
  private func paint(_ y: Int, into row: UnsafeMutablePointer<UInt8>) {
    let light = UnsafePointer(planes + y * planeStride)
    let size = planeStride * unit.height
    JPEGRow.paint(
      light, colours: bands == 3 ? (light + size, light + 2 * size) : nil, width: self.size.width,
      into: row)
  }
}
