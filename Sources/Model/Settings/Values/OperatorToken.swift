// OperatorToken: a token of `admin.tokens`: its name, its secret and its scopes.

/// What an operator's token allows.
public enum OperatorScope: String, CaseIterable, Hashable, Sendable {
  /// Reads: failed URLs, downloads, prefetches, cache look-ups.
  case read
  /// Removes from the cache: purges, clears, cleans, and forgets failed URLs.
  case purge
  /// Changes anything else: uploads, prefetches, pause, resume, cancel.
  case write
}

/// A token as configured. Written as a text, it has all scopes and no name.
public struct OperatorToken: Hashable, Sendable, ExpressibleByStringLiteral {
  /// The name in the log: 1–64 letters, digits, `-`, `_` and `.`; `nil` for `token` with its place
  /// in the list.
  public var name: String?
  /// The secret of 16 characters or more, or a reference to it.
  public var secret: SecretText
  /// The scopes, at least one.
  public var scopes = Set(OperatorScope.allCases)

  /// Creates a token with all scopes and no name.
  public init(_ secret: SecretText) { self.secret = secret }

  /// Creates a token as its text in a configuration does: a secret, `env:NAME` or `file:/path`.
  public init(stringLiteral text: String) { self.init(SecretText(text)) }

  /// Whether the text can be a token: 16 or more visible ASCII characters, without commas.
  public static func isSecret(_ text: String) -> Bool {
    text.utf8.count >= 16 && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && $0 != 0x2c }
  }
}
