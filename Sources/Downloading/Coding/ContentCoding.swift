// ContentCoding: the content codings (RFC 9110, section 8.4.1) that are accepted although requests ask for `identity`.

import Model

/// A content coding that is decoded. Only a single coding is accepted; several indicate something
/// other than an image.
enum ContentCoding: String, Sendable {
  case gzip, deflate, br, zstd

  /// Parses a name in lower case; `nil` for an unknown one.
  init?(name: String) {
    // RFC 9110, section 8.4.1.3.
    self.init(rawValue: name == "x-gzip" ? "gzip" : name)
  }

  /// Creates a decoder for one body.
  ///
  /// - Throws: `internal` without memory.
  func makeDecoder() throws(ImageError) -> any ContentDecoding {
    switch self {
    case .gzip: ContentDecoder(try DeflateStream(hasGzipFrame: true))
    case .deflate: ContentDecoder(try DeflateStream(hasGzipFrame: false))
    case .br: ContentDecoder(try BrotliStream())
    case .zstd: ContentDecoder(try ZstandardStream())
    }
  }
}
