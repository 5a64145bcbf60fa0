// ThumborSignature: the signatures of thumbor's and imagor's addresses.

import Core
import FoundationEssentials

/// Verifies base64url(HMAC(key, path after the signature)), with padding or without.
///
/// thumbor has SHA-1. imagor also has SHA-256 and SHA-512, and may cut the text of a signature.
struct ThumborSignature: Sendable {
  private let keys: [[UInt8]]
  private let digest: HMAC.Digest
  /// Characters of a signature; 0: all.
  private let length: Int

  init(_ dialect: ThumborDialect, _ options: DoorOptions) {
    keys = options.keys
    digest = dialect == .thumbor ? .sha1 : HMAC.Digest(rawValue: options.digest) ?? .sha1
    length = dialect == .thumbor ? 0 : options.signatureBytes
  }

  /// Returns whether a key signed a path, in a time that does not depend on how much is right.
  ///
  /// - Parameters:
  ///   - given: the signature as sent; its padding may be percent-encoded.
  ///   - path: the path after the signature and its slash, as sent.
  func verify(_ given: Substring, of path: Substring) -> Bool {
    // SHA-512 has 88 characters, and each may be percent-encoded.
    guard given.utf8.count <= 3 * 88, let text = PercentEncoding.decode(given.utf8) else {
      return false
    }
    let (given, message) = (Self.unpadded(Array(text.utf8)), Array(path.utf8))
    var isFound = false
    for key in keys {
      let code = HMAC.code(of: message, key: key, digest: digest)
      let all = Array(Data(code).base64EncodedData()).map(Self.safe)
      let expected = Self.unpadded(length > 0 ? Array(all.prefix(length)) : all)
      if HMAC.isEqual(expected, given) { isFound = true }
    }
    return isFound
  }

  /// Returns a character of base64url for one of base64 (RFC 4648, section 5).
  private static func safe(_ byte: UInt8) -> UInt8 {
    switch byte {
    case UInt8(ascii: "+"): UInt8(ascii: "-")
    case UInt8(ascii: "/"): UInt8(ascii: "_")
    default: byte
    }
  }

  private static func unpadded(_ text: [UInt8]) -> [UInt8] {
    Array(text.prefix { $0 != UInt8(ascii: "=") })
  }

  /// Decodes base64url, padded or not, as imagor has it after `b64:`; `nil` for other text.
  static func decoded(_ text: some StringProtocol) -> String? {
    var bytes = unpadded(Array(text.utf8)).map { byte in
      switch byte {
      case UInt8(ascii: "-"): UInt8(ascii: "+")
      case UInt8(ascii: "_"): UInt8(ascii: "/")
      default: byte
      }
    }
    bytes += [UInt8](repeating: UInt8(ascii: "="), count: (4 - bytes.count % 4) % 4)
    return Data(base64Encoded: Data(bytes)).flatMap { String(validating: $0, as: UTF8.self) }
  }
}
