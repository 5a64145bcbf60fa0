// SigningKey: a secret that URLs are signed with, and its id.

import Model

/// A key with its secret, as it signs and verifies URLs. Its texts leave out the secret.
public struct SigningKey: Equatable, Sendable, CustomStringConvertible, CustomReflectable {
  /// The name of the key in a signature, `id.…`. It is public.
  public let id: String
  /// The bytes of the secret, as they are written in the configuration.
  private let secret: [UInt8]

  /// Creates a key. The settings check its id and the length of its secret.
  public init(id: String, secret: String) {
    self.id = id
    self.secret = Array(secret.utf8)
  }

  /// The id.
  public var description: String { id }

  /// The id alone, for code that prints an object's properties.
  public var customMirror: Mirror { Mirror(self, children: ["id": id]) }

  /// Returns the signature of a text without the key's id: 43 characters of base64url (RFC 4648,
  /// section 5), without `=`.
  func signature(of text: String) -> [UInt8] {
    Base64URL.encode(HMAC.sha256(of: Array(text.utf8), key: secret))
  }
}
