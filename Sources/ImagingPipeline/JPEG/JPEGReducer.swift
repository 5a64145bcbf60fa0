// JPEGReducer: decodes a JPEG at an eighth, a quarter or half of its size, without ever computing the pixels in full.

import Model

/// A decoder of its own for the JPEGs that nearly all are.
///
/// libjpeg takes all coefficients of a block apart, into a buffer, and transforms that. Here those that the reduced
/// image cannot show are skipped, several at a time, and the others are added up at once. Buffers are made for what the
/// header says and touched only within, whatever the bytes that follow are; what is damaged, or of another kind, is left
/// to libjpeg.
struct JPEGReducer: ~Copyable {
  /// Size of the reduced image: that of the full one divided, rounded up.
  let size: PixelSize
  /// Size of the full one.
  var sourceSize: PixelSize { frame.size }
  /// 1, grey, or 3, RGB.
  var bands: Int { frame.components.count }

  private let frame: JPEGFrame
  /// One for each component. Owned: freed by `deinit`.
  private let parts: UnsafeMutablePointer<JPEGComponentDecoder>
  /// Units across and down, of `frame.blocks` of the largest component.
  private let units: (across: Int, down: Int)
  /// Pixels of a unit's side.
  private let unit: (width: Int, height: Int)
  /// A row of units of each component, as large as the reduced image's. Owned: freed by `deinit`.
  private let planes: UnsafeMutablePointer<Float>

  /// Prepares it; `nil` where the JPEG is not of the kind that can be decoded here.
  ///
  /// - Parameter shrink: 2, 4 or 8.
  init?(_ source: UnsafeRawBufferPointer, shrink: Int) {
    guard let frame = JPEGFrame(source) else { return nil }
    let most = frame.blocks
    var bases: [JPEGBasis] = []
    for component in frame.components {
      // A component with fewer samples is reduced less, to the same size as the others.
      let across = 8 * most.across / (shrink * component.blocks.across)
      let down = 8 * most.down / (shrink * component.blocks.down)
      let isWhole =
        most.across.isMultiple(of: component.blocks.across)
        && most.down.isMultiple(of: component.blocks.down)
      guard isWhole, [1, 2, 4, 8].contains(across), [1, 2, 4, 8].contains(down) else { return nil }
      bases.append(JPEGBasis(across: across, down: down, quantization: component.quantization))
    }
    func divided(_ side: Int, by divisor: Int) -> Int { (side + divisor - 1) / divisor }
    self.frame = frame
    parts = .allocate(capacity: bases.count)
    for (index, basis) in bases.enumerated() {
      (parts + index).initialize(to: JPEGComponentDecoder(frame.components[index], basis))
    }
    size = PixelSize(
      width: divided(frame.size.width, by: shrink), height: divided(frame.size.height, by: shrink))
    units = (
      divided(frame.size.width, by: 8 * most.across), divided(frame.size.height, by: 8 * most.down)
    )
    unit = (8 * most.across / shrink, 8 * most.down / shrink)
    let count = units.across * unit.width * unit.height * frame.components.count
    planes = .allocate(capacity: count)
    planes.initialize(repeating: 0, count: count)
  }

  deinit {
    parts.deinitialize(count: frame.components.count)
    parts.deallocate()
    planes.deallocate()
  }

  /// Decodes.
  ///
  /// - Parameter write: Gets each row, `size.width × bands` bytes, from top to bottom, valid during the call.
  /// - Returns: Whether all of it was there and made sense. What was written is of no use otherwise.
  func run(
    _ source: UnsafeRawBufferPointer,
    _ write: (_ y: Int, UnsafePointer<UInt8>) throws(ImageError) -> Void
  ) throws(ImageError) -> Bool {
    guard var bits = JPEGBits(source, at: frame.start) else { return false }
    // A pixel is written as 4 bytes, of which the next one overwrites what is too much.
    let row = UnsafeMutablePointer<UInt8>.allocate(capacity: size.width * bands + 4)
    defer { row.deallocate() }
    var (done, restarts) = (0, 0)
    for index in 0..<bands { parts[index].mean = 0 }
    for unitRow in 0..<units.down {
      for column in 0..<units.across {
        if frame.restartInterval > 0 && done == frame.restartInterval {
          guard bits.pass(0xd0 + UInt8(restarts % 8)) else { return false }
          (done, restarts) = (0, restarts + 1)
          for index in 0..<bands { parts[index].mean = 0 }
        }
        for index in 0..<bands {
          let corner = index * planeStride * unit.height + column * unit.width
          guard parts[index].decodeUnit(&bits, to: planes + corner, stride: planeStride) else {
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
    // Neither more nor less than an image's numbers: what goes on, or ends without its end, libjpeg is to judge.
    return bits.pass(0xd9)
  }

  /// Values from one row of `planes` to the next.
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
    // JFIF 1.02; the means of both colours are 128, which all components come with.
    let byBlue = SIMD4<Float>(0, -0.344_136, 1.772, 0)
    let byRed = SIMD4<Float>(1.402, -0.714_136, 0, 0)
    for x in 0..<size.width {
      let color =
        SIMD4(repeating: light[x]) + byBlue * (blue[x] - 128) + byRed * (red[x] - 128)
      out.storeBytes(of: Self.bytes(color), toByteOffset: x &* 3, as: SIMD4<UInt8>.self)
    }
  }

  /// Rounded, and clamped to what a byte can be.
  @inline(__always)
  private static func bytes(_ values: SIMD4<Float>) -> SIMD4<UInt8> {
    // From 2^23 on a float has no fraction: adding 1.5 times that rounds, and leaves the whole number in the low bits.
    // The standard library's conversion looks at each value for what cannot be converted, at ten times the cost.
    let magic: Float = 12_582_912
    // Nothing is as far below as 12 million, where this would wrap around: numbers have 10 bits and those they are
    // multiplied by 8 (`JPEGFrame`), so that a band is within 4.3 million, and a colour is made of less than 2.8 of these.
    let whole =
      unsafeBitCast(values + magic, to: SIMD4<Int32>.self) &- Int32(bitPattern: magic.bitPattern)
    return SIMD4<UInt8>(
      truncatingIfNeeded: whole.clamped(lowerBound: .zero, upperBound: .init(repeating: 255)))
  }
}
