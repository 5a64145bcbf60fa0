// FreshnessFigures: the part of `/stats` about stale responses.

/// Figures of stale responses and revalidations.
public struct FreshnessFigures: Codable, Hashable, Sendable {
  /// Stale responses during a revalidation (RFC 5861's stale-while-revalidate).
  public var staleWhileRevalidate = 0
  /// Stale responses because the origin failed (RFC 5861's stale-if-error).
  public var staleIfError = 0
  /// Stale responses that the request accepted (`max-stale`).
  public var maxStale = 0
  /// Background revalidations started.
  public var revalidations = 0
  /// Background revalidations that are running.
  public var revalidating = 0
  /// Background revalidations that failed.
  public var revalidationsFailed = 0
  /// Sources in back-off because their origin failed.
  public var failingSources = 0
  /// Cached sources found with a receive time in the future, because the clock was set back.
  public var clockSetBack = 0

  /// Creates figures of zero.
  public init() {}

  enum CodingKeys: String, CodingKey {
    case revalidations, revalidating
    case staleWhileRevalidate = "stale_while_revalidate"
    case staleIfError = "stale_if_error"
    case maxStale = "max_stale"
    case revalidationsFailed = "revalidations_failed"
    case failingSources = "failing_sources"
    case clockSetBack = "clock_set_back"
  }
}
