// Operator: the holder of a token, with what the token allows.

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
