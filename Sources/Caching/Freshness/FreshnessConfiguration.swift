// FreshnessConfiguration: the bounds and defaults of freshness lifetimes, for all hosts and per
// host.

import Model

/// The operator's bounds and defaults of freshness lifetimes. All times are in seconds, 0 or more.
public struct FreshnessBounds: Hashable, Sendable {
  /// The lifetime if the origin states none. The default is SDWebImage's maximum age, one week.
  public var defaultLifetime = 604_800
  /// Maximum heuristic lifetime, derived from `Last-Modified` if the origin states no lifetime. 0
  /// disables the heuristic.
  public var heuristicLifetime = 604_800
  /// The lifetime in client caches if the origin states none. No purge reaches those caches.
  public var clientDefault = 3_600
  /// Minimum lifetime. It overrides the origin, `no-cache` included. It does not apply to responses
  /// that must not be stored or that have `Vary: *`.
  public var minimumLifetime = 0
  /// Maximum lifetime.
  public var maximumLifetime = 31_536_000
  /// `stale-while-revalidate` if the origin states none and does not require revalidation for each
  /// use. The default is Varnish's grace.
  public var staleWhileRevalidate = 10
  /// `stale-if-error` if the origin states none.
  public var staleIfError = 86_400

  /// Creates the default bounds.
  public init() {}

  /// Returns the lifetime within the bounds. The minimum wins if the bounds contradict each other.
  func bounding(_ lifetime: Int) -> Int { max(min(lifetime, maximumLifetime), minimumLifetime) }
}

/// The bounds of some hosts. `nil` keeps the general value.
public struct FreshnessRule: Hashable, Sendable {
  /// The hosts of the rule.
  public let host: HostPattern
  /// See `FreshnessBounds`.
  public var defaultLifetime: Int?
  /// See `FreshnessBounds`.
  public var heuristicLifetime: Int?
  /// See `FreshnessBounds`.
  public var clientDefault: Int?
  /// See `FreshnessBounds`.
  public var minimumLifetime: Int?
  /// See `FreshnessBounds`.
  public var maximumLifetime: Int?
  /// See `FreshnessBounds`.
  public var staleWhileRevalidate: Int?
  /// See `FreshnessBounds`.
  public var staleIfError: Int?
  /// Whether origins get back the cookies they set. With `Vary: Cookie`, such a cookie can select
  /// another response the next time.
  public var keepsCookies = false

  /// Creates a rule that changes nothing.
  public init(host: HostPattern) { self.host = host }
}

/// The settings of the freshness rules.
public struct FreshnessConfiguration: Sendable {
  /// The bounds for all hosts.
  public var bounds = FreshnessBounds()
  /// The rules for some hosts. The first matching rule applies.
  public var hostRules: [FreshnessRule] = []

  /// Creates the default settings.
  public init() {}

  /// Returns the bounds for a URL, and whether its origin gets cookies from a cookie jar.
  func bounds(for url: SourceURL) -> (FreshnessBounds, keepsCookies: Bool) {
    guard let rule = hostRules.first(where: { $0.host.matches(url.host) }) else {
      return (bounds, false)
    }
    var bounds = bounds
    bounds.defaultLifetime = rule.defaultLifetime ?? bounds.defaultLifetime
    bounds.heuristicLifetime = rule.heuristicLifetime ?? bounds.heuristicLifetime
    bounds.clientDefault = rule.clientDefault ?? bounds.clientDefault
    bounds.minimumLifetime = rule.minimumLifetime ?? bounds.minimumLifetime
    bounds.maximumLifetime = rule.maximumLifetime ?? bounds.maximumLifetime
    bounds.staleWhileRevalidate = rule.staleWhileRevalidate ?? bounds.staleWhileRevalidate
    bounds.staleIfError = rule.staleIfError ?? bounds.staleIfError
    return (bounds, rule.keepsCookies)
  }
}
