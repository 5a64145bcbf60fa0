// AdminSettings: the keys `admin.…`: access to the admin endpoints.

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
