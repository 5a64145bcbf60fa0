// Freshness+Clients: what caches behind this one are told of a lifetime, and for how long a failure holds.

extension Freshness {
  /// The `max-age` of an answer of this age: what a client's own cache may count on (RFC 9111, section 5.2.2.1).
  ///
  /// Where the origin says nothing, it moves with the age, so that each answer is kept for `clientTime` from its coming.
  public func clientMaxAge(atAge age: Int) -> Int {
    // In this order: an age is far below the greatest number, a time may be it.
    clientTime >= clientLifetime - age ? clientLifetime : age + clientTime
  }

  /// Whether clients' own caches are told something else than caches that clients share.
  public var isOtherForClients: Bool { clientLifetime != lifetime || clientTime < clientLifetime }

  /// For how many of `seconds` from `now` a failure that came with this freshness may be remembered: no longer than the
  /// origin says, where it says anything.
  public func bounding(failure seconds: Int, at now: UnixTime) -> Int {
    guard isStorable else { return 0 }
    return isStated ? min(seconds, max(timeToLive(at: now), 0)) : seconds
  }

  /// The same for clients' own caches.
  public func bounding(clientFailure seconds: Int, at now: UnixTime) -> Int {
    let seconds = min(bounding(failure: seconds, at: now), clientTime)
    return isStated ? min(seconds, max(clientLifetime - age(at: now), 0)) : seconds
  }
}
