// Sniffer: detects the format of a source from its bytes alone.

import Model

/// Detects formats by their signatures. A source of an unknown format never reaches a loader.
enum Sniffer {
  /// Returns the format of an image.
  ///
  /// - Throws: `ImageError.unsupportedFormat` if the format is unknown or not in `allowed`.
  static func format(of bytes: UnsafeRawBufferPointer, allowed: Set<ImageFormat>)
    throws(ImageError) -> ImageFormat
  {
    guard let format = FormatSigns.format(of: bytes) else {
      let start = bytes.prefix(16).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }
      throw .unsupportedFormat(
        detail: "\(bytes.count) bytes starting \(start.joined(separator: " "))")
    }
    guard allowed.contains(format) else {
      throw .unsupportedFormat(detail: "\(format.rawValue) is disabled")
    }
    return format
  }
}
