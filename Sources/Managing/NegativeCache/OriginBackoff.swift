// OriginBackoff: whose origins failed to renew what is kept, so that they are left alone for a moment.

import Model

/// How origins are spared that failed.
public struct StalePolicy: Sendable {
  /// For how many seconds an origin is not asked again for a source that it failed to give, where something is kept of it;
  /// longer where its `Retry-After` says so, up to an hour.
  public var errorInterval = 10
  /// Most sources remembered, at least 1: of more, the first to fail is forgotten, and asked for once more.
  public var limit = 10_000

  /// The defaults.
  public init() {}
}

/// The sources of which something is kept and could not be renewed. Pure: it is told what time it is.
///
/// Without it every request for an image whose origin is down would wait for that origin's time-out before it is given
/// what is kept. The first one does; from then on it is given at once, and after each interval the origin is asked behind
/// an answer's back, until it recovers or nobody has asked for a while.
struct OriginBackoff {
  private struct Entry {
    let letsStaleBeServed: Bool
    let until: UnixTime
    /// Its place in `places`.
    let place: Int
  }

  /// For how many seconds after its interval a failure still counts as one: after that the next request waits for the
  /// origin, which may have been well for long.
  static let failureWindow = 60
  /// The longest `Retry-After` heard, in seconds.
  static let longestInterval = 3_600

  private let policy: StalePolicy
  private var entries: [CacheKey: Entry] = [:]
  /// Of each entry its key, in the order they came; of some that have gone, too.
  private var places: [CacheKey] = []
  private var oldest = 0

  init(policy: StalePolicy) { self.policy = policy }

  /// A source could not be renewed.
  mutating func add(_ key: CacheKey, _ error: ImageError, now: UnixTime) {
    let wished = min(error.originRetryAfter ?? 0, Self.longestInterval)
    let place = entries[key]?.place ?? newPlace(of: key)
    entries[key] = Entry(
      letsStaleBeServed: error.letsStaleBeServed,
      until: UnixTime(seconds: now.seconds + max(policy.errorInterval, wished)), place: place)
  }

  /// A source was renewed, or is gone.
  mutating func remove(_ key: CacheKey) { entries[key] = nil }

  /// Whether the origin is not to be asked for a source now.
  func isLeftAlone(_ key: CacheKey, now: UnixTime) -> Bool {
    entries[key].map { now < $0.until } ?? false
  }

  /// Whether what is kept of a source may be served at once, since its origin failed lately.
  func isFailing(_ key: CacheKey, now: UnixTime) -> Bool {
    guard let entry = entries[key], entry.letsStaleBeServed else { return false }
    return now.seconds < entry.until.seconds + Self.failureWindow
  }

  /// How many are left alone now. Takes time in proportion to what is remembered.
  func count(now: UnixTime) -> Int { entries.values.count { now < $0.until } }

  private mutating func newPlace(of key: CacheKey) -> Int {
    guard places.count >= policy.limit else {
      places.append(key)
      return places.count - 1
    }
    let place = oldest
    oldest = (oldest + 1) % places.count
    if let gone = entries[places[place]], gone.place == place { entries[places[place]] = nil }
    places[place] = key
    return place
  }
}

extension ImageError {
  /// For how many seconds the origin wants to be left alone, where it says so.
  fileprivate var originRetryAfter: Int? {
    switch cause {
    case .sourceError(_, let seconds): seconds
    default: nil
    }
  }
}
