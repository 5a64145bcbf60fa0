// PlainThumbnail: what the pipeline is measured against, libvips's own thumbnail and a save with its defaults.

import CVips
import Core

/// `vips_thumbnail_buffer` and a save.
struct PlainThumbnail {
  let width: Int
  /// `nil`: by the source, PNG where it has an alpha, GIF where it has frames, else JPEG.
  let format: ImageFormat?

  /// Makes one.
  func make(from source: UnsafeRawBufferPointer) throws(ImageError) -> [UInt8] {
    var image: UnsafeMutablePointer<VipsImage>?
    // Only a loader with pages takes the option that asks for all of them.
    let sniffed = vips_foreign_find_load_buffer(source.baseAddress, source.count)
      .map { String(cString: $0) }
    let pages = ["gif", "Webp"].contains { sniffed?.contains($0) == true } ? "[n=-1]" : ""
    guard
      pictor_vips_thumbnail(source.baseAddress, source.count, &image, CInt(width), pages) == 0,
      let image
    else { throw Self.failure }
    defer { pictor_g_object_unref(image) }
    var bytes: UnsafeMutableRawPointer?
    var count = 0
    guard pictor_vips_image_write_to_buffer(image, suffix(for: image), &bytes, &count) == 0,
      let bytes
    else { throw Self.failure }
    defer { g_free(bytes) }
    return [UInt8](UnsafeRawBufferPointer(start: bytes, count: count))
  }

  private func suffix(for image: UnsafeMutablePointer<VipsImage>) -> String {
    if let format { return ".\(format.rawValue)[strip]" }
    if vips_image_get_n_pages(image) > 1 { return ".gif[strip]" }
    return vips_image_hasalpha(image) != 0 ? ".png[strip]" : ".jpg[strip]"
  }

  private static var failure: ImageError {
    defer { vips_error_clear() }
    return .undecodable(detail: String(cString: vips_error_buffer()))
  }
}
