// Signatures: base64 with the alphabet of URLs (RFC 4648, section 5), and the check of signatures.

import Core
import FoundationEssentials

/// The encoding of sources, names and signatures in paths.
enum Base64URL {
  /// Returns the decoded bytes, with or without padding at the end; `nil` for another text.
  static func decode(_ text: some StringProtocol) -> [UInt8]? {
    guard text.isPlain(with: "-_=") else { return nil }
    var digits = String(text.map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 })
    while digits.hasSuffix("=") { digits.removeLast() }
    digits += String(repeating: "=", count: (4 - digits.utf8.count % 4) % 4)
    return Data(base64Encoded: digits).map(Array.init)
  }

  /// Returns the decoded text; `nil` also for bytes that are not UTF-8, and with NUL.
  static func text(_ text: some StringProtocol) -> String? {
    decode(text).flatMap { $0.contains(0) ? nil : String(validating: $0, as: UTF8.self) }
  }

  /// Returns the text of bytes, without padding.
  static func encode(_ bytes: some Sequence<UInt8>) -> String {
    let digits = Data(bytes).base64EncodedString().prefix { $0 != "=" }
    return String(digits.map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 })
  }
}

extension Sequence where Element: StringProtocol {
  /// Returns whether one of the signatures is the given one, in a time that tells nothing of it.
  /// Texts are compared, because base64url has several texts for the same bytes.
  func hasSignature(_ given: some StringProtocol) -> Bool {
    reduce(false) { found, expected in
      HMAC.isEqual(Array(expected.utf8), Array(given.utf8)) || found
    }
  }
}
