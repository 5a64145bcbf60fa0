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
      throw .unsupportedFormat(detail: description(of: bytes))
    }
    guard allowed.contains(format) else {
      throw .unsupportedFormat(detail: "\(format.rawValue) is disabled")
    }
    return format
  }

  /// Describes bytes of no known format: an HTML page by its title, which often says why there is no image, other bytes by
  /// the first ones.
  private static func description(of bytes: UnsafeRawBufferPointer) -> String {
    let start = Array(bytes.prefix(4_096))
    let lower = start.map { (0x41...0x5a).contains($0) ? $0 | 0x20 : $0 }
    func find(_ text: String) -> Int? {
      lower.indices.first { lower[$0...].starts(with: text.utf8) }
    }
    guard find("<html") != nil || find("<!doctype html") != nil else {
      let first = start.prefix(16).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }
      return "\(bytes.count) bytes starting \(first.joined(separator: " "))"
    }
    let tag = find("<title").map { start[$0...].drop { $0 != UInt8(ascii: ">") }.dropFirst() }
    let title = String(
      decoding: (tag ?? []).prefix { $0 != UInt8(ascii: "<") }.prefix(200), as: UTF8.self)
    let words = title.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    return words.isEmpty ? "an HTML page" : "an HTML page, '\(words)'"
  }
}
