// Staleness: decides which cached entries may be served, and remembers the origins that fail.

import Core

/// Decides which cached entries may satisfy which requests, with the back-off from failing origins
/// (RFC 5861).
final class Staleness: Sendable {
  private let backoff: Lock<OriginBackoff>
  private let now: @Sendable () -> UnixTime

  init(settings: FreshnessSettings, now: @escaping @Sendable () -> UnixTime) {
    backoff = Lock(OriginBackoff(settings: settings))
    self.now = now
  }

  /// Changes the back-off after failures from now on.
  func apply(_ settings: FreshnessSettings) { backoff.withLock { $0.settings = settings } }

  /// The number of sources in back-off. O(n) in the number of remembered failures.
  var failingCount: Int { backoff.withLock { $0.count(now: now()) } }

  /// Returns how a cached entry may satisfy a request, or `nil` if the origin must be asked first.
  func use(of freshness: Freshness, by request: ImageRequest) -> EntryUse? {
    let now = now()
    return EntryUse(
      of: freshness, by: request.options, at: now,
      originFails: backoff.withLock { $0.isFailing(request.key.source, now: now) })
  }

  /// Returns the cache status of a response from `tier`.
  func status(
    of use: EntryUse, with freshness: Freshness, from tier: CacheStatus.Tier
  ) -> CacheStatus {
    use.status(of: freshness, from: tier, at: now())
  }

  /// Records a failed load of a source that is cached. Returns whether the cached entry may be
  /// served instead (stale-if-error).
  func allowsStale(
    _ freshness: Freshness, insteadOf error: ImageError, to request: ImageRequest
  ) -> Bool {
    record(error, of: request.key.source) && servesOnError(freshness, to: request)
  }

  /// Returns whether a cached entry may be served after an error that allows it. Requests that force
  /// revalidation get the error, not a stale response.
  func servesOnError(_ freshness: Freshness, to request: ImageRequest) -> Bool {
    request.options.cache == .normal && !request.options.isRevalidation
      && freshness.mayBeServedOnError(at: now())
  }

  /// Returns whether the back-off forbids a request to the origin now.
  func isInBackoff(_ source: CacheKey) -> Bool {
    backoff.withLock { $0.isLeftAlone(source, now: now()) }
  }

  /// Ends the back-off of a source that was revalidated or is gone.
  func endBackoff(of source: CacheKey) { backoff.withLock { $0.remove(source) } }

  /// Records a failed revalidation and returns whether the error allows a stale response.
  private func record(_ error: ImageError, of source: CacheKey) -> Bool {
    switch error.cause {
    case .sourceUnreachable, .sourceTimeout, .sourceTLS, .sourceIncomplete, .sourceError,
      .tooManyRedirects, .forbiddenSource, .sourceTooLarge, .unsupportedFormat, .overloaded:
      backoff.withLock { $0.add(source, after: error, now: now()) }
      return error.letsStaleBeServed
    // Other failures say nothing about the origin.
    default: return false
    }
  }
}

extension ImageError {
  /// Whether a stale response may replace this error.
  ///
  /// - The origin cannot be reached, or responds with 5xx (RFC 5861, section 4) or 429 (as in
  ///   nginx's `proxy_cache_use_stale`).
  /// - Pictor is overloaded and cannot ask the origin.
  ///
  /// All other responses are the origin's answer and reach the client (RFC 9111, section 4.3.3).
  var letsStaleBeServed: Bool {
    switch cause {
    case .sourceUnreachable, .sourceTimeout, .sourceTLS, .sourceIncomplete, .overloaded: true
    case .sourceError(let status, _, _): status == 429 || (500...599).contains(status)
    default: false
    }
  }

  /// The status of the origin's response, if there was one.
  var originStatus: Int? {
    switch cause {
    case .sourceError(let status, _, _), .sourceNotFound(let status): status
    default: nil
    }
  }
}
