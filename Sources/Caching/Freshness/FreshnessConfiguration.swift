// FreshnessConfiguration: the bounds and defaults of lifetimes, for all hosts and for some.

import Model

/// What an operator decides about lifetimes; all times in seconds, 0 or more.
public struct FreshnessBounds: Hashable, Sendable {
  /// Where the origin says nothing; SDWebImage's maximum age, one week.
  public var defaultLifetime = 604_800
  /// At most this of what `Last-Modified` suggests, where the origin says nothing else; 0: it suggests nothing.
  public var heuristicLifetime = 604_800
  /// For how long clients' own caches keep an answer whose origin says nothing: no purge reaches them.
  public var clientDefault = 3_600
  /// No lifetime is shorter, whatever the origin says, `no-cache` included: that is what it is set for. What may not be
  /// stored, or is not the answer to the next request (`Vary: *`), is left alone.
  public var minimumLifetime = 0
  /// No lifetime is longer.
  public var maximumLifetime = 31_536_000
  /// `stale-while-revalidate` where the origin says nothing of it, nor wants to be asked each time. Varnish's grace.
  public var staleWhileRevalidate = 10
  /// `stale-if-error` where the origin says nothing of it.
  public var staleIfError = 86_400

  /// The defaults.
  public init() {}

  /// A lifetime within the bounds; where they contradict each other, the minimum counts.
  func bounding(_ lifetime: Int) -> Int { max(min(lifetime, maximumLifetime), minimumLifetime) }
}

/// What is different for some hosts; `nil` where nothing is.
public struct FreshnessRule: Hashable, Sendable {
  /// The hosts it is for.
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
  /// Whether origins are sent cookies that they set, so that `Vary: Cookie` speaks of something that changes here.
  public var keepsCookies = false

  /// A rule that changes nothing.
  public init(host: HostPattern) { self.host = host }
}

/// What the freshness rules can be told.
public struct FreshnessConfiguration: Sendable {
  /// For all hosts.
  public var bounds = FreshnessBounds()
  /// For some; of several for one host the first counts, as everywhere.
  public var hostRules: [FreshnessRule] = []

  /// The defaults.
  public init() {}

  /// What holds for a URL, and whether its origin is sent cookies from a jar.
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
