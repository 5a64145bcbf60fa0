// FreshnessSettings: the keys `freshness.…`, and the overrides of host rules.

/// The operator's bounds and defaults of freshness lifetimes, `freshness.…`. Parts count whole
/// seconds.
public struct FreshnessSettings: Hashable, Sendable {
  /// The lifetime if the origin states none. The default is SDWebImage's maximum age, one week.
  public var defaultLifetime = Duration.seconds(7 * 86_400)
  /// Maximum heuristic lifetime, derived from `Last-Modified` if the origin states no lifetime (RFC
  /// 9111, section 4.2.2). 0 disables the heuristic.
  public var heuristicLifetime = Duration.seconds(7 * 86_400)
  /// The lifetime in client caches if the origin states none. No purge reaches those caches.
  public var clientDefault = Duration.seconds(3_600)
  /// Minimum lifetime. It overrides the origin, `no-cache` included. It does not apply to responses
  /// that must not be stored or that have `Vary: *`.
  public var minimumLifetime = Duration.zero
  /// Maximum lifetime. It overrides the origin.
  public var maximumLifetime = Duration.seconds(365 * 86_400)
  /// `stale-while-revalidate` (RFC 5861) if the origin states none and does not require
  /// revalidation for each use. The default is Varnish's grace.
  public var staleWhileRevalidate = Duration.seconds(10)
  /// `stale-if-error` (RFC 5861) if the origin states none.
  public var staleIfError = Duration.seconds(86_400)
  /// How long a source is not requested again after its origin failed, if a stale copy is cached;
  /// at most 1 h.
  public var errorInterval = Duration.seconds(10)

  /// The range of all settings but `errorInterval`.
  public static let allowed = Duration.zero...(.seconds(10 * 365 * 86_400))

  /// Creates the default settings.
  public init() {}

  /// Returns the settings with the overrides of a host rule.
  public func overridden(by overrides: FreshnessOverrides) -> FreshnessSettings {
    var settings = self
    for (setting, lifetime) in overrides.lifetimes { settings[keyPath: setting] = lifetime }
    return settings
  }
}

/// The freshness settings of a host rule; `nil` keeps the value of `FreshnessSettings`.
@dynamicMemberLookup
public struct FreshnessOverrides: Hashable, Sendable {
  fileprivate var lifetimes: [WritableKeyPath<FreshnessSettings, Duration> & Sendable: Duration] =
    [:]

  /// A setting of `FreshnessSettings`.
  public subscript(
    dynamicMember setting: WritableKeyPath<FreshnessSettings, Duration> & Sendable
  ) -> Duration? {
    get { lifetimes[setting] }
    set { lifetimes[setting] = newValue }
  }
}

extension Duration {
  /// Whole seconds, rounded down, as in HTTP headers.
  public var flooredSeconds: Int { Int(components.seconds) }
}
