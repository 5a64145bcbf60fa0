// Base64URL: base64 with the alphabet of URLs (RFC 4648, section 5).

import FoundationEssentials

/// The encoding of sources, names and signatures in paths.
enum Base64URL {
  /// Returns the decoded bytes, with or without padding at the end; `nil` for other characters and
  /// for a length that no bytes have.
  static func decode(_ text: some StringProtocol) -> [UInt8]? {
    guard !text.utf8.contains(where: { "+/".utf8.contains($0) }) else { return nil }
    var digits = text.utf8.map { replaced($0, from: "-_", to: "+/") }
    while digits.last == UInt8(ascii: "=") { digits.removeLast() }
    digits += Array(repeating: UInt8(ascii: "="), count: (4 - digits.count % 4) % 4)
    return Data(base64Encoded: Data(digits)).map(Array.init)
  }

  /// Returns the text of bytes, without padding.
  static func encode(_ bytes: some Sequence<UInt8>) -> String {
    let digits = Data(bytes).base64EncodedData().filter { $0 != UInt8(ascii: "=") }
    return String(decoding: digits.map { replaced($0, from: "+/", to: "-_") }, as: UTF8.self)
  }

  private static func replaced(_ byte: UInt8, from: StaticString, to: StaticString) -> UInt8 {
    let index = from.withUTF8Buffer { $0.firstIndex(of: byte) }
    return index.map { index in to.withUTF8Buffer { $0[index] } } ?? byte
  }
}
