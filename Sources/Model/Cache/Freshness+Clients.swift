// Freshness+Clients: computes lifetimes for downstream caches and for failures.

extension Freshness {
  /// Returns the `max-age` for a client's private cache, given the age of the response (RFC 9111,
  /// section 5.2.2.1).
  ///
  /// If the origin states no lifetime, each response gets `clientTime` from now, so `max-age` grows
  /// with the age.
  public func clientMaxAge(atAge age: Int) -> Int {
    // This order avoids overflow: `clientTime` may be the maximum, ages are far smaller.
    clientTime >= clientLifetime - age ? clientLifetime : age + clientTime
  }

  /// Whether private caches get another lifetime than shared caches.
  public var isOtherForClients: Bool { clientLifetime != lifetime || clientTime < clientLifetime }

  /// Returns how many of `seconds` a failure may be cached: no longer than the origin states.
  public func bounding(failure seconds: Int, at now: UnixTime) -> Int {
    guard isStorable else { return 0 }
    return isStated ? min(seconds, max(timeToLive(at: now), 0)) : seconds
  }

  /// Returns how many of `seconds` a client's private cache may store a failure.
  public func bounding(clientFailure seconds: Int, at now: UnixTime) -> Int {
    let seconds = min(bounding(failure: seconds, at: now), clientTime)
    return isStated ? min(seconds, max(clientLifetime - age(at: now), 0)) : seconds
  }
}
