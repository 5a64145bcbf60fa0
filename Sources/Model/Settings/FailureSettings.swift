// FailureSettings: the keys `failures.…`: the negative cache.

/// The settings of the negative cache of failed URLs, `failures.…`.
public struct FailureSettings: Hashable, Sendable {
  /// How long failures are remembered, by the response's HTTP status. Other statuses are never
  /// cached.
  ///
  /// For an origin's 404 or 410, the origin's status counts.
  public var lifetimes: [Int: Duration] = [
    404: .seconds(600), 410: .seconds(86_400), 413: .seconds(3_600), 415: .seconds(3_600),
    422: .seconds(3_600),
  ]
  /// Maximum number of failed URLs; 0 disables the negative cache.
  public var limit = 10_000

  /// The statuses that can have a lifetime.
  public static let statuses: Set<Int> = [404, 410, 413, 415, 422]

  /// Creates the default settings.
  public init() {}
}
