// EncodedCheck: checks that an encoder that reported success wrote an image.

import Model

extension Encoded {
  /// Reopens the header of the encoded image and compares format and size with the expected ones.
  ///
  /// heifsave of libvips 8.14.1 reports success when libaom runs out of memory, and leaves a
  /// container without an image.
  ///
  /// - Throws: `ImageError.internal`, because the source is not at fault.
  func check(as format: ImageFormat) throws(ImageError) {
    var fault: String?
    bytes.withUnsafeBytes { bytes in
      do throws(ImageError) {
        guard FormatSigns.format(of: bytes) == format else {
          fault = "no such file"
          return
        }
        let found = try Self.size(bytes, as: format)
        if found != size { fault = "\(found) instead of \(size)" }
      } catch {
        fault = error.logDetail ?? error.code
      }
    }
    if let fault {
      throw .internal(detail: "encoded \(format.rawValue) of \(bytes.count) bytes: \(fault)")
    }
  }

  private static func size(
    _ bytes: UnsafeRawBufferPointer, as format: ImageFormat
  ) throws(ImageError) -> PixelSize {
    // libvips takes a tenth of a millisecond to open a JPEG, mostly for objects.
    if format == .jpeg, let size = JPEGProcess(of: bytes)?.size { return size }
    return try Loader.describe(bytes, as: format, failOn: .none).size
  }
}
