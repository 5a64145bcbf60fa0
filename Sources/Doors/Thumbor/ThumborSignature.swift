// ThumborSignature: the signatures of thumbor's and imagor's addresses.

import Core

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
    let given = Array(text.utf8.prefix { $0 != UInt8(ascii: "=") })
    let message = Array(path.utf8)
    var isFound = false
    for key in keys {
      let code = HMAC.code(of: message, key: key, digest: digest)
      let expected = Array(Base64URL.encode(code).utf8.prefix(length > 0 ? length : .max))
      if HMAC.isEqual(expected, given) { isFound = true }
    }
    return isFound
  }
}
