// FreshnessFigures: what /stats shows of what was served stale.

/// What was served stale, and how it became fresh again.
public struct FreshnessFigures: Codable, Hashable, Sendable {
  /// Answers that were stale while their origin was asked (RFC 5861's stale-while-revalidate).
  public var staleWhileRevalidate = 0
  /// Answers that were stale because their origin failed (RFC 5861's stale-if-error).
  public var staleIfError = 0
  /// Answers that were stale because the request takes them so (`max-stale`).
  public var maxStale = 0
  /// Revalidations begun behind a stale answer.
  public var revalidations = 0
  /// Of those, the ones that run now.
  public var revalidating = 0
  /// Of those that ended, the ones that failed.
  public var revalidationsFailed = 0
  /// Sources whose origins failed lately, and are left alone for a moment.
  public var failingSources = 0
  /// Times that a source was found to have come in later than now: the clock was set back.
  public var clockSetBack = 0

  /// Nothing yet.
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
