// AWSCredentials: the keys that requests to S3 and other AWS services are signed with.

/// An access key with its secret. Its texts leave out the secret and the session token.
public struct AWSCredentials: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
  /// The access key's id. It is public: each request names it.
  public let accessKey: String
  /// The secret access key.
  public let secretKey: String
  /// The token of temporary credentials, sent with each request; `nil` for permanent ones.
  public let sessionToken: String?

  /// Creates credentials. Returns `nil` if the access key or the token contains a character that a
  /// request cannot carry: anything but visible ASCII, and in the access key also `/`, `,` and `=`,
  /// which separate the parts of an `Authorization`. Neither these nor the secret may be empty.
  public init?(accessKey: String, secretKey: String, sessionToken: String? = nil) {
    func isVisible(_ text: String) -> Bool {
      !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f }
    }
    guard isVisible(accessKey), !accessKey.utf8.contains(where: "/,=".utf8.contains),
      !secretKey.isEmpty, sessionToken.map(isVisible) ?? true
    else { return nil }
    self.accessKey = accessKey
    self.secretKey = secretKey
    self.sessionToken = sessionToken
  }

  /// The access key.
  public var description: String { accessKey }

  /// The access key alone, for code that prints an object's properties.
  public var customMirror: Mirror { Mirror(self, children: ["accessKey": accessKey]) }
}
