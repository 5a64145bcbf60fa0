// SubsampledPlanes: the planes of an image in memory of libaom.

import CAom
import Model

/// The planes of an image in YCbCr of BT.601, of the full range (JFIF), with a sample of Cb and Cr for four pixels (4:2:0).
struct SubsampledPlanes: ~Copyable {
  /// Owned; freed by `deinit`.
  private let image: UnsafeMutablePointer<aom_image_t>

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
    let strides = image.pointee.stride
    ChromaSubsampling.fullRange.convert(
      pixels, size,
      to: ChromaSubsampling.Planes(
        luma: .init(luma, stride: strides.0), cb: .init(cb, stride: strides.1),
        cr: .init(cr, stride: strides.2)))
  }

  deinit { aom_img_free(image) }

  /// Calls a closure with the image, which is valid during the call.
  func withImage<Result>(
    _ body: (UnsafePointer<aom_image_t>) throws(ImageError) -> Result
  ) throws(ImageError) -> Result {
    try body(UnsafePointer(image))
  }
}
