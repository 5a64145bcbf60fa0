// OriginBackoff: the back-off from origins that fail to revalidate cached sources.

import Core

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

  /// - Parameter limit: the maximum number of remembered sources. The oldest failure is forgotten first.
  init(settings: FreshnessSettings = FreshnessSettings(), limit: Int = 10_000) {
    self.settings = settings
    entries = BoundedTable(limit: limit)
  }

  /// Records a failed revalidation.
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
