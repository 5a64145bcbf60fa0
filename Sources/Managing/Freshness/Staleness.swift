// Staleness: how fresh entries are and have to be (RFC 9111, RFC 5861), and which origins fail.

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

  /// Returns whether a cached entry may be served after an error that allows it. Requests that
  /// force revalidation get the error, not a stale response.
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

/// Applies the freshness policy to responses that arrive now.
struct FreshnessEvaluator: Sendable {
  let policy: any FreshnessPolicy
  let now: @Sendable () -> UnixTime

  func freshness(of origin: OriginResponse, for request: ImageRequest) -> Freshness {
    freshness(of: origin, from: request.source, isAuthorized: request.isAuthorized)
  }

  func freshness(
    of origin: OriginResponse, from url: SourceURL, isAuthorized: Bool
  ) -> Freshness {
    policy.freshness(of: origin, from: url, isAuthorized: isAuthorized, at: Moment(now()))
  }

  /// Returns the short freshness of an image that is damaged, or not verified yet.
  func limited(_ freshness: Freshness) -> Freshness { freshness.ofDamaged(at: now()) }
}

/// How a cached entry may satisfy a request.
enum EntryUse: Equatable {
  /// The entry is fresh enough, without asking the origin.
  case fresh
  /// The entry is stale, and the reason allows serving it.
  case stale(CacheStatus.StaleReason)

  /// Applies the rule. The result is `nil` if the origin must be asked first.
  ///
  /// - Parameter originFails: whether the origin failed recently, so that stale-if-error applies
  ///   without asking it again.
  init?(
    of freshness: Freshness, by options: LoadOptions, at now: UnixTime,
    originFails: @autoclosure () -> Bool
  ) {
    guard options.cache.readsCache else { return nil }
    if freshness.satisfies(options.age, at: now) {
      self = freshness.isFresh(at: now) ? .fresh : .stale(.accepted)
      return
    }
    // Requests with age demands get no staler entry than they allow. Requests that store nothing
    // start no revalidation.
    guard options.age == AgeDemands(), !options.isRevalidation, !options.store.isEmpty else {
      return nil
    }
    if freshness.mayBeServedWhileRevalidating(at: now) {
      self = .stale(.whileRevalidating)
    } else if freshness.mayBeServedOnError(at: now), originFails() {
      self = .stale(.ifError)
    } else {
      return nil
    }
  }

  /// Why the entry may be served stale, or `nil` if it is fresh.
  var staleReason: CacheStatus.StaleReason? {
    if case .stale(let reason) = self { reason } else { nil }
  }

  /// Returns the cache status of a response from `tier` with this use.
  func status(
    of freshness: Freshness, from tier: CacheStatus.Tier, at now: UnixTime
  ) -> CacheStatus {
    guard case .stale(let reason) = self else { return .hit(tier) }
    return .staleHit(tier, reason, ttl: min(freshness.timeToLive(at: now), 0))
  }
}

/// The cached sources that could not be revalidated. A pure state machine: the caller passes the
/// time.
///
/// Without back-off, every request for an image of a failing origin would wait for the time-out
/// before it gets the stale response. With it, only the first request waits. Later requests get the
/// stale response at once, and the origin is asked in the background after each interval.
struct OriginBackoff {
  private struct Entry {
    let letsStaleBeServed: Bool
    let until: UnixTime
  }

  /// How long after the back-off a failure still counts, in seconds. After that the next request
  /// waits for the origin, which may have recovered.
  static let failureWindow = 60
  /// The maximum accepted `Retry-After`, in seconds.
  static let longestInterval = 3_600

  /// How many seconds a source is not requested again: `errorInterval`, or a longer `Retry-After`.
  var settings: FreshnessSettings
  private var entries: BoundedTable<CacheKey, Entry>

  /// - Parameter limit: the maximum number of remembered sources. The oldest failure goes first.
  init(settings: FreshnessSettings = FreshnessSettings(), limit: Int = 10_000) {
    self.settings = settings
    entries = BoundedTable(limit: limit)
  }

  mutating func add(_ key: CacheKey, after error: ImageError, now: UnixTime) {
    let wished = min(error.originRetryAfter ?? 0, Self.longestInterval)
    entries[key] = Entry(
      letsStaleBeServed: error.letsStaleBeServed,
      until: UnixTime(seconds: now.seconds + max(settings.errorInterval.flooredSeconds, wished)))
  }

  /// Removes a source that was revalidated or is gone.
  mutating func remove(_ key: CacheKey) { entries[key] = nil }

  /// Returns whether the back-off forbids a request to the origin now.
  func isLeftAlone(_ key: CacheKey, now: UnixTime) -> Bool {
    entries[key].map { now < $0.until } ?? false
  }

  /// Returns whether a stale response may be served at once, because the origin failed recently.
  func isFailing(_ key: CacheKey, now: UnixTime) -> Bool {
    guard let entry = entries[key], entry.letsStaleBeServed else { return false }
    return now.seconds < entry.until.seconds + Self.failureWindow
  }

  /// Returns the number of sources in back-off. O(n) in the number of entries.
  func count(now: UnixTime) -> Int { entries.count { now < $0.value.until } }
}

extension ImageError {
  /// The origin's `Retry-After` in seconds, if it sent one.
  fileprivate var originRetryAfter: Int? {
    switch cause {
    case .sourceError(_, let seconds, _): seconds
    default: nil
    }
  }
}

/// Decides when to log that the clock was set back. A pure state machine: the caller passes the
/// time.
///
/// Each setback is one episode, however many cached sources show it. The episode ends when the
/// clock reaches the latest of their receive times.
struct ClockWatch {
  private var caughtUpAt: UnixTime?

  /// Notes a cached source received after `now`. Returns whether this begins an episode.
  mutating func sees(_ receivedAt: UnixTime, now: UnixTime) -> Bool {
    let known = caughtUpAt.flatMap { now < $0 ? $0 : nil }
    caughtUpAt = max(known ?? receivedAt, receivedAt)
    return known == nil
  }
}

/// Counts and logs cached sources whose age is unknown, because the clock was set back.
struct ClockMonitor: Sendable {
  private let watch = Lock(ClockWatch())
  let counters: FreshnessCounters
  let log: Log
  let now: @Sendable () -> UnixTime

  /// Notes a cached source before its origin is asked, and logs once per episode. Hits do not call
  /// this method.
  func note(_ freshness: Freshness) {
    let now = now()
    guard !freshness.isOfThePast(at: now) else { return }
    counters.clockSetBack.add()
    guard watch.withLock({ $0.sees(freshness.receivedAt, now: now) }) else { return }
    log.warning(
      "the clock was set back: entries from the future are loaded again",
      fields: ["seconds": .int(freshness.receivedAt.seconds - now.seconds)])
  }
}
