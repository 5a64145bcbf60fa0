// EntryUse: the one rule of how fresh a cached entry has to be for a request (RFC 9111, RFC 5861).

import Core

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
