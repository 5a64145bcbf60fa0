// Sniffer: which formats may be decoded, told from the bytes alone.

import Model

/// Tells formats apart by how they start. What it does not know never reaches a loader.
enum Sniffer {
  /// The format of an image.
  ///
  /// - Throws: `ImageError.unsupportedFormat` when it is none of `ImageFormat`, or not among `allowed`.
  static func format(of bytes: UnsafeRawBufferPointer, allowed: Set<ImageFormat>)
    throws(ImageError) -> ImageFormat
  {
    guard let format = FormatSigns.format(of: bytes) else {
      let start = bytes.prefix(16).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }
      throw .unsupportedFormat(
        detail: "\(bytes.count) bytes starting \(start.joined(separator: " "))")
    }
    guard allowed.contains(format) else {
      throw .unsupportedFormat(detail: "\(format.rawValue) is turned off")
    }
    return format
  }
}
