// PixelRows: an image's rows from top to bottom as plain bytes, computed on the thread that asks for them.

import CVips
import Model

/// Reads an image of 8 bits a band row by row, forwards only.
///
/// libvips's own sinks compute on threads of a pool and hand each strip over; for the small images that are most of
/// the work, starting and waking those costs more than the pixels do.
struct PixelRows: ~Copyable {
  private let region: UnsafeMutablePointer<VipsRegion>
  private let size: PixelSize
  /// Rows computed at a time.
  private let strip: Int

  /// Bytes computed at a time, about: less than a core's own cache holds, and many rows of what is narrow.
  private static let stripBytes = 65_536

  /// Starts at the top.
  ///
  /// - Parameter image: 8 bits a band; kept by what is made here.
  init(of image: borrowing Image) throws(ImageError) {
    size = image.size
    strip = max(8, min(64, Self.stripBytes / (image.size.width * image.bands)))
    let region = image.withVipsImage { vips_region_new($0) }
    guard let region else { throw VipsLibrary.failure(in: "pixels") }
    self.region = region
  }

  deinit { pictor_g_object_unref(region) }

  /// A row's bytes, bands interleaved.
  ///
  /// - Parameter y: Not above the row asked for before.
  /// - Returns: Valid until the next call.
  func row(_ y: Int) throws(ImageError) -> UnsafePointer<UInt8> {
    var valid = region.pointee.valid
    if y < Int(valid.top) || y >= Int(valid.top + valid.height) {
      valid = VipsRect(
        left: 0, top: CInt(y), width: CInt(size.width), height: CInt(min(strip, size.height - y)))
      guard vips_region_prepare(region, &valid) == 0 else {
        throw VipsLibrary.failure(in: "pixels")
      }
      valid = region.pointee.valid
    }
    // Rows are `bpl` bytes apart, and the first one starts at `left`, which is 0: whole rows were asked for.
    let offset = (y - Int(valid.top)) * Int(region.pointee.bpl)
    return UnsafePointer(region.pointee.data + offset)
  }
}
