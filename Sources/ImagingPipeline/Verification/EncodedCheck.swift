// EncodedCheck: checks that an encoder that reported success wrote an image.

import Model

extension Encoded {
  /// Reopens the header of the encoded image and compares format and size with the expected ones.
  ///
  /// heifsave of libvips 8.14.1 reports success when libaom runs out of memory, and leaves a
  /// container without an image.
  ///
  /// - Parameter isEncodedHere: Whether the bytes are of `Output.encode`, and not the source's own.
  /// - Throws: `ImageError.internal`, because the source is not at fault.
  func check(as format: ImageFormat, isEncodedHere: Bool = false) throws(ImageError) {
    var fault: String?
    bytes.withUnsafeBytes { bytes in
      do throws(ImageError) {
        guard FormatSigns.format(of: bytes) == format else {
          fault = "no such file"
          return
        }
        let found = try Self.size(bytes, as: format, isEncodedHere: isEncodedHere)
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
    _ bytes: UnsafeRawBufferPointer, as format: ImageFormat, isEncodedHere: Bool
  ) throws(ImageError) -> PixelSize {
    // libjpeg has written it. Opening it by libvips takes 2 % of a miss of 800×600 (perf), mostly for objects.
    if isEncodedHere, format == .jpeg, let size = JPEGProcess(of: bytes)?.size { return size }
    return try Loader.describe(bytes, as: format, failOn: .none).size
  }
}
