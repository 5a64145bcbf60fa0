// SubsampledPlanes: converts red, green and blue to luma and to colours of half the resolution.

import CAom
import Model

/// The planes of an image in YCbCr of BT.601, of the full range (JFIF), with a sample of Cb and Cr for four pixels (4:2:0).
struct SubsampledPlanes: ~Copyable {
  /// Owned; freed by `deinit`.
  private let image: UnsafeMutablePointer<aom_image_t>

  /// The fraction bits of a weight.
  private static let bits = 16

  /// Converts an image.
  ///
  /// - Parameter pixels: Red, green and blue, row by row without gaps.
  /// - Returns: `nil` without memory.
  init?(of pixels: UnsafePointer<UInt8>, _ size: PixelSize) {
    guard
      let image = aom_img_alloc(
        nil, AOM_IMG_FMT_I420, CUnsignedInt(size.width), CUnsignedInt(size.height), 16)
    else { return nil }
    guard let luma = image.pointee.planes.0, let cb = image.pointee.planes.1,
      let cr = image.pointee.planes.2
    else {
      aom_img_free(image)
      return nil
    }
    image.pointee.range = AOM_CR_FULL_RANGE
    self.image = image
    let stride = size.width * 3
    for y in 0..<size.height {
      Self.luma(
        pixels + y * stride, count: size.width, to: luma + y * Int(image.pointee.stride.0))
    }
    for y in 0..<(size.height + 1) / 2 {
      let lower = min(2 * y + 1, size.height - 1)
      Self.colours(
        (pixels + 2 * y * stride, pixels + lower * stride), count: size.width,
        to: (
          cb + y * Int(image.pointee.stride.1), cr + y * Int(image.pointee.stride.2)
        ))
    }
  }

  deinit { aom_img_free(image) }

  /// Calls a closure with the image, which is valid during the call.
  func withImage<Result>(
    _ body: (UnsafePointer<aom_image_t>) throws(ImageError) -> Result
  ) throws(ImageError) -> Result {
    try body(UnsafePointer(image))
  }

  private static func luma(
    _ row: UnsafePointer<UInt8>, count: Int, to plane: UnsafeMutablePointer<UInt8>
  ) {
    for x in 0..<count {
      let pixel = row + 3 &* x
      let sum =
        19_595 &* Int32(pixel[0]) &+ 38_470 &* Int32(pixel[1]) &+ 7_471 &* Int32(pixel[2])
      plane[x] = UInt8(truncatingIfNeeded: (sum &+ 1 << 15) >> Int32(bits))
    }
  }

  /// Averages four pixels for each sample; the last column and row count twice where sides are odd.
  private static func colours(
    _ rows: (upper: UnsafePointer<UInt8>, lower: UnsafePointer<UInt8>), count: Int,
    to planes: (cb: UnsafeMutablePointer<UInt8>, cr: UnsafeMutablePointer<UInt8>)
  ) {
    for x in 0..<(count + 1) / 2 {
      let left = 6 &* x
      let right = 3 &* min(2 &* x &+ 1, count &- 1)
      func sum(_ band: Int) -> Int32 {
        Int32(rows.upper[left &+ band]) &+ Int32(rows.upper[right &+ band])
          &+ Int32(rows.lower[left &+ band]) &+ Int32(rows.lower[right &+ band])
      }
      let (r, g, b) = (sum(0), sum(1), sum(2))
      // 128 and a half, of sums of four.
      let centre: Int32 = 257 << (Int32(bits) + 1)
      let cb = centre &- 11_058 &* r &- 21_710 &* g &+ 32_768 &* b
      let cr = centre &+ 32_768 &* r &- 27_439 &* g &- 5_329 &* b
      planes.cb[x] = UInt8(clamping: cb >> (Int32(bits) + 2))
      planes.cr[x] = UInt8(clamping: cr >> (Int32(bits) + 2))
    }
  }
}
