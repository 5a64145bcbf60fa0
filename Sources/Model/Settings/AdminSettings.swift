// AdminSettings: the keys `admin.…`: the operators' tokens, as configured and as resolved.

/// The settings of the admin endpoints, `admin.…`.
public struct AdminSettings: Hashable, Sendable {
  /// The operators' tokens. Without tokens the endpoints are disabled.
  public var tokens: [OperatorToken] = []

  /// The operators' names in the log, in the order of `tokens`: the configured name, or `token`
  /// with the place in the list, from 1.
  public var names: [String] {
    tokens.enumerated().map { index, token in token.name ?? "token\(index + 1)" }
  }
}

/// What an operator's token allows.
public enum OperatorScope: String, CaseIterable, Hashable, Sendable {
  /// Reads: failed URLs, downloads, prefetches, cache look-ups.
  case read
  /// Removes from the cache: purges, clears, cleans, and forgets failed URLs.
  case purge
  /// Does anything else: uploads, prefetches, diagnoses, pause, resume, cancel.
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

/// A token with its secret, and its holder's name.
public struct Operator: Hashable, Sendable, CustomStringConvertible {
  /// The name in the log, unique among the operators.
  public let name: String
  /// The secret. It belongs in no message and no log line.
  public let token: String
  /// What the token allows.
  public var scopes = Set(OperatorScope.allCases)

  /// The name, without the secret.
  public var description: String { name }
}
