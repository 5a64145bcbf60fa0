// JPEGRow: converts a row of decoded components to pixels.

enum JPEGRow {
  /// Writes a row of pixels, 1 byte for each if there is only light, otherwise 3.
  ///
  /// - Parameters:
  ///   - light: `width` values.
  ///   - colours: Cb and Cr, `width` values each.
  ///   - row: Has room for 4 bytes after the last pixel but one.
  static func paint(
    _ light: UnsafePointer<Float>,
    colours: (blue: UnsafePointer<Float>, red: UnsafePointer<Float>)?, width: Int,
    into row: UnsafeMutablePointer<UInt8>
  ) {
    let out = UnsafeMutableRawPointer(row)
    guard let (blue, red) = colours else {
      for x in 0..<width { row[x] = bytes(SIMD4(repeating: light[x]))[0] }
      return
    }
    // The JFIF 1.02 conversion. Every component includes an offset of 128, which is subtracted from
    // both colour components.
    let byBlue = SIMD4<Float>(0, -0.344_136, 1.772, 0)
    let byRed = SIMD4<Float>(1.402, -0.714_136, 0, 0)
    for x in 0..<width {
      let color =
        SIMD4(repeating: light[x]) + byBlue * (blue[x] - 128) + byRed * (red[x] - 128)
      out.storeBytes(of: bytes(color), toByteOffset: x &* 3, as: SIMD4<UInt8>.self)
    }
  }

  /// Rounds values and clamps them to the range of a byte.
  @inline(__always)
  private static func bytes(_ values: SIMD4<Float>) -> SIMD4<UInt8> {
    // From 2^23 a float has no fraction, so adding 1.5 times that rounds, and leaves the integer in
    // the low bits. The standard library's conversion checks each value and is far slower.
    let magic: Float = 12_582_912
    // The trick fails only below about -12 million. A coefficient has 10 bits and its factor 8
    // (`JPEGQuantizers`), so a component stays within 4.3 million and a colour within 2.8 times that.
    let whole =
      unsafeBitCast(values + magic, to: SIMD4<Int32>.self) &- Int32(bitPattern: magic.bitPattern)
    return SIMD4<UInt8>(
      truncatingIfNeeded: whole.clamped(lowerBound: .zero, upperBound: .init(repeating: 255)))
  }
}
