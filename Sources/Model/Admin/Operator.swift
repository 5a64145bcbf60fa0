// Operator: the holder of a token, with what the token allows.

/// A token with its secret, and its holder's name.
public struct Operator: Hashable, Sendable, CustomStringConvertible {
  /// The name in the log, unique among the operators.
  public let name: String
  /// The secret. It belongs in no message and no log line.
  public let token: String
  /// What the token allows.
  public let scopes: Set<OperatorScope>

  /// Creates an operator; by default the token allows everything.
  public init(
    name: String, token: String, scopes: Set<OperatorScope> = Set(OperatorScope.allCases)
  ) {
    self.name = name
    self.token = token
    self.scopes = scopes
  }

  /// The name, without the secret.
  public var description: String { name }
}
