// ImgproxySignature: verifies the signatures of imgproxy's addresses.

import Core

/// The keys and salts of imgproxy. A signature is the base64url of the HMAC-SHA256 of the salt and
/// the path behind the signature, or of its first bytes.
struct ImgproxySignature: Sendable {
  private let pairs: [(key: [UInt8], salt: [UInt8])]
  private let length: Int

  /// Creates the check of a door. A key without a salt has an empty one.
  init(_ options: DoorOptions) {
    let salts = options.salts
    pairs = options.keys.enumerated().map { index, key in
      (key, index < salts.count ? salts[index] : [])
    }
    length = (1...32).contains(options.signatureBytes) ? options.signatureBytes : 32
  }

  /// Whether addresses are signed.
  var isRequired: Bool { !pairs.isEmpty }

  /// Returns whether a signature is that of one of the paths by one of the pairs, in a time that
  /// does not depend on how much of it is right.
  ///
  /// Texts are compared, because base64url has several texts for the same bytes.
  func accepts(_ signature: some StringProtocol, of paths: [String]) -> Bool {
    let given = Array(signature.utf8)
    var isAccepted = false
    for path in paths {
      for pair in pairs {
        let digest = HMAC.sha256(of: pair.salt + path.utf8, key: pair.key)
        let expected = Array(Base64URL.encode(digest.prefix(length)).utf8)
        guard expected.count == given.count else { continue }
        var difference: UInt8 = 0
        for index in expected.indices { difference |= expected[index] ^ given[index] }
        if difference == 0 { isAccepted = true }
      }
    }
    return isAccepted
  }
}
