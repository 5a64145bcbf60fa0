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
  public var sourceSize: PixelSize { frame.size }
  /// The bands of the reduced image: 1 for grey or 3 for RGB.
  public var bands: Int { frame.components.count }

  private let frame: JPEGFrame
  /// One decoder for each component. Owned; freed by `deinit`.
  private let decoders: UnsafeMutablePointer<JPEGComponentDecoder>
  /// The number of units across and down; a unit has `frame.blocks` blocks of the largest
  /// component.
  private let units: (across: Int, down: Int)
  /// The size of a unit in reduced pixels.
  private let unit: (width: Int, height: Int)
  /// A row of units of each component, at the reduced image's resolution. Owned; freed by `deinit`.
  private let planes: UnsafeMutablePointer<Float>

  /// The pixels that a side of a block can be reduced to.
  private static let sides: Set = [1, 2, 3, 4, 6, 8]

  /// Prepares decoding; `nil` if this decoder does not support the JPEG.
  ///
  /// - Parameter eighths: How much of each side is left, in eighths: 1–4.
  public init?(_ source: UnsafeRawBufferPointer, eighths: Int) {
    guard let frame = JPEGFrame(source) else { return nil }
    let maximum = frame.blocks
    var bases: [JPEGBasis] = []
    for component in frame.components {
      // A subsampled component is reduced less, to the same size as the others.
      let across = eighths * maximum.across / component.blocks.across
      let down = eighths * maximum.down / component.blocks.down
      let isWhole =
        maximum.across.isMultiple(of: component.blocks.across)
        && maximum.down.isMultiple(of: component.blocks.down)
      guard isWhole, Self.sides.contains(across), Self.sides.contains(down) else { return nil }
      bases.append(JPEGBasis(across: across, down: down, quantization: component.quantization))
    }
    func divided(_ side: Int, by divisor: Int) -> Int { (side + divisor - 1) / divisor }
    self.frame = frame
    decoders = .allocate(capacity: bases.count)
    for (index, basis) in bases.enumerated() {
      (decoders + index).initialize(to: JPEGComponentDecoder(frame.components[index], basis: basis))
    }
    size = PixelSize(
      width: divided(frame.size.width * eighths, by: 8),
      height: divided(frame.size.height * eighths, by: 8))
    units = (
      divided(frame.size.width, by: 8 * maximum.across),
      divided(frame.size.height, by: 8 * maximum.down)
    )
    unit = (maximum.across * eighths, maximum.down * eighths)
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
  public func run(
    _ source: UnsafeRawBufferPointer,
    write: (_ y: Int, UnsafePointer<UInt8>) throws(ImageError) -> Void
  ) throws(ImageError) -> Bool {
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
    let light = planes + y * planeStride
    let out = UnsafeMutableRawPointer(row)
    guard bands == 3 else {
      for x in 0..<size.width { row[x] = Self.bytes(SIMD4(repeating: light[x]))[0] }
      return
    }
    let blue = light + planeStride * unit.height
    let red = blue + planeStride * unit.height
    // The JFIF 1.02 conversion. Every component includes an offset of 128, which is subtracted from
    // both colour components.
    let byBlue = SIMD4<Float>(0, -0.344_136, 1.772, 0)
    let byRed = SIMD4<Float>(1.402, -0.714_136, 0, 0)
    for x in 0..<size.width {
      let color =
        SIMD4(repeating: light[x]) + byBlue * (blue[x] - 128) + byRed * (red[x] - 128)
      out.storeBytes(of: Self.bytes(color), toByteOffset: x &* 3, as: SIMD4<UInt8>.self)
    }
  }

  /// Rounds values and clamps them to the range of a byte.
  @inline(__always)
  private static func bytes(_ values: SIMD4<Float>) -> SIMD4<UInt8> {
    // From 2^23 a float has no fraction, so adding 1.5 times that rounds, and leaves the integer in
    // the low bits. The standard library's conversion checks each value and is far slower.
    let magic: Float = 12_582_912
    // The trick fails only below about -12 million. A coefficient has 10 bits and its factor 8
    // (`JPEGFrame`), so a component stays within 4.3 million and a colour within 2.8 times that.
    let whole =
      unsafeBitCast(values + magic, to: SIMD4<Int32>.self) &- Int32(bitPattern: magic.bitPattern)
    return SIMD4<UInt8>(
      truncatingIfNeeded: whole.clamped(lowerBound: .zero, upperBound: .init(repeating: 255)))
  }
}
