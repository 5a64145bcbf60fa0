// PixelRows: reads an image's rows from top to bottom as plain bytes, without threads of libvips.

import CVips
import Model

/// Reads an image row by row, forwards only.
///
/// libvips's own sinks compute on a thread pool and hand each strip over. For small images, which
/// are the majority, those threads cost more than the pixels.
struct PixelRows: ~Copyable {
  /// Owned; freed by `deinit`.
  private let image: UnsafeMutablePointer<VipsImage>
  /// The pixels of an image in memory.
  private let pixels: UnsafeMutablePointer<UInt8>?
  /// Computes the pixels of any other image.
  private let region: UnsafeMutablePointer<VipsRegion>?
  private let rowBytes: Int
  private let size: PixelSize
  /// The number of rows computed at a time.
  private let strip: Int

  /// The approximate bytes computed at a time: less than a core's own cache, but many rows of a
  /// narrow image.
  private static let stripBytes = 65_536

  /// Starts at the top row.
  ///
  /// - Parameter image: The image; this value keeps a reference to it.
  init(of image: borrowing Image) throws(ImageError) {
    size = image.size
    rowBytes = image.size.width * image.pixelBytes
    pixels = image.pixels
    strip = max(8, min(64, Self.stripBytes / rowBytes))
    self.image = image.withVipsImage { $0 }
    pictor_g_object_ref(self.image)
    region = pixels == nil ? vips_region_new(self.image) : nil
    guard pixels != nil || region != nil else { throw VipsLibrary.failure(in: "pixels") }
  }

  deinit {
    if let region { pictor_g_object_unref(region) }
    pictor_g_object_unref(image)
  }

  /// Returns the bytes of a row, with interleaved bands.
  ///
  /// - Parameter y: The row; not above the row of the previous call.
  /// - Returns: A pointer that is valid until the next call.
  func row(_ y: Int) throws(ImageError) -> UnsafePointer<UInt8> {
    if let pixels { return UnsafePointer(pixels + y * rowBytes) }
    guard let region else { throw VipsLibrary.failure(in: "pixels") }
    var valid = region.pointee.valid
    if y < Int(valid.top) || y >= Int(valid.top + valid.height) {
      valid = VipsRect(
        left: 0, top: CInt(y), width: CInt(size.width), height: CInt(min(strip, size.height - y)))
      guard vips_region_prepare(region, &valid) == 0 else {
        throw VipsLibrary.failure(in: "pixels")
      }
      valid = region.pointee.valid
    }
    // Rows are `bpl` bytes apart. The first row starts at `left`, which is 0 because whole rows are
    // requested.
    let offset = (y - Int(valid.top)) * Int(region.pointee.bpl)
    return UnsafePointer(region.pointee.data + offset)
  }
}
