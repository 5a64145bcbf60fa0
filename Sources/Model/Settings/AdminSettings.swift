// AdminSettings: the keys `admin.…`: access to the admin endpoints.

/// The settings of the admin endpoints, `admin.…`.
public struct AdminSettings: Hashable, Sendable {
  /// Tokens of operators, each of 16 characters or more. Without tokens the endpoints are disabled.
  public var tokens: [String] = []

  /// Creates the default settings.
  public init() {}
}
