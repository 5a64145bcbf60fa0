// Freshness: how old something kept is and how long it may be served unasked (RFC 9111, section 4.2).

import Glibc

/// A moment, in whole seconds since 1970-01-01 UTC, as HTTP dates and ages count.
public struct UnixTime: Hashable, Comparable, Sendable, Codable {
  /// Seconds since 1970-01-01 UTC.
  public let seconds: Int

  /// A moment so many seconds after 1970-01-01 UTC.
  public init(seconds: Int) { self.seconds = seconds }

  /// The same, or the first or last moment whose distance to any other can be told.
  public var bounded: UnixTime {
    UnixTime(seconds: min(max(seconds, -Freshness.maximumSeconds), Freshness.maximumSeconds))
  }

  /// The wall clock's time.
  public static var now: UnixTime { UnixTime(seconds: time(nil)) }

  /// Earlier is less.
  public static func < (left: UnixTime, right: UnixTime) -> Bool { left.seconds < right.seconds }
}

/// When something was received and for how long it is fresh.
public struct Freshness: Hashable, Sendable, Codable {
  /// When the origin's answer came in, by our clock.
  public let receivedAt: UnixTime
  /// How old the answer already was then, in seconds (RFC 9111's corrected_initial_age).
  public let initialAge: Int
  /// For how many seconds after its making the answer is fresh (RFC 9111's freshness_lifetime).
  public let lifetime: Int
  /// Whether it may be kept at all, in any tier (`no-store`, `private`).
  public let isStorable: Bool
  /// Whether a request that takes it stale may have it so; an origin may forbid it (RFC 9111, section 4.2.4).
  public let mayBeStale: Bool
  /// For how many seconds after its lifetime it may be served at once while the origin is asked (RFC 5861, section 3).
  public private(set) var staleWhileRevalidate: Int
  /// For how many seconds after its lifetime it may be served where the origin cannot be had (RFC 5861, section 4).
  public private(set) var staleIfError: Int
  /// Whether the origin says that it will not change while it is fresh (RFC 8246).
  public let isImmutable: Bool
  /// Whether the origin says how long it is fresh; otherwise the lifetime is a default or a guess.
  public let isStated: Bool
  /// For how many seconds after its making a client's own cache may keep it (RFC 9111's `max-age`, which `s-maxage` does
  /// not replace there).
  public let clientLifetime: Int
  /// For how many seconds from now a client's own cache may keep it, where the origin does not say: no purge reaches it.
  public let clientTime: Int

  /// What a time counts as that nobody bounds: 2^31 seconds, the largest that caches know (RFC 9111, section 1.2.2).
  public static let unlimited = 1 << 31

  /// The greatest number of seconds that is kept of anything, 34,000 years: sums of a few are far from overflowing,
  /// wherever the numbers come from (an origin, a file, another process).
  public static let maximumSeconds = 1 << 40

  /// Freshness as computed from an origin's answer; times in seconds, never negative and never above `maximumSeconds`.
  /// What must not be stale gets no time to be so.
  public init(
    receivedAt: UnixTime, initialAge: Int = 0, lifetime: Int, isStorable: Bool = true,
    mayBeStale: Bool = true, staleWhileRevalidate: Int = 0, staleIfError: Int = 0,
    isImmutable: Bool = false, isStated: Bool = true, clientLifetime: Int? = nil,
    clientTime: Int = Freshness.unlimited
  ) {
    func bounded(_ seconds: Int) -> Int { min(max(seconds, 0), Self.maximumSeconds) }
    self.receivedAt = receivedAt.bounded
    self.initialAge = bounded(initialAge)
    self.lifetime = bounded(lifetime)
    self.isStorable = isStorable
    self.mayBeStale = mayBeStale
    self.staleWhileRevalidate = mayBeStale ? bounded(staleWhileRevalidate) : 0
    self.staleIfError = mayBeStale ? bounded(staleIfError) : 0
    self.isImmutable = isImmutable
    self.isStated = isStated
    self.clientLifetime = bounded(clientLifetime ?? lifetime)
    self.clientTime = bounded(clientTime)
  }

  /// Of what is made of two answers: stale as soon as one of them is, and with leave only for what both leave.
  public func combined(with other: Freshness) -> Freshness {
    func end(_ freshness: Freshness, _ lifetime: Int) -> Int {
      let left = lifetime - freshness.initialAge
      // Lifetimes may be as long as an origin likes to say.
      let (end, isTooLate) = freshness.receivedAt.seconds.addingReportingOverflow(left)
      return isTooLate ? .max : end
    }
    let first = end(self, lifetime) <= end(other, other.lifetime) ? self : other
    let clientEnd = min(end(self, clientLifetime), end(other, other.clientLifetime))
    let (clientLifetime, isTooLong) = clientEnd.subtractingReportingOverflow(
      first.receivedAt.seconds - first.initialAge)
    return Freshness(
      receivedAt: first.receivedAt, initialAge: first.initialAge, lifetime: first.lifetime,
      isStorable: isStorable && other.isStorable, mayBeStale: mayBeStale && other.mayBeStale,
      staleWhileRevalidate: min(staleWhileRevalidate, other.staleWhileRevalidate),
      staleIfError: min(staleIfError, other.staleIfError),
      isImmutable: isImmutable && other.isImmutable, isStated: isStated || other.isStated,
      clientLifetime: isTooLong ? Freshness.unlimited : clientLifetime,
      clientTime: min(clientTime, other.clientTime))
  }

  /// Age in seconds at `now` (RFC 9111, section 4.2.3); a clock that was set back makes nothing younger than it came.
  public func age(at now: UnixTime) -> Int {
    initialAge + max(now.seconds - receivedAt.seconds, 0)
  }

  /// By how many seconds something may have come in after `now` before its age is no longer believed.
  ///
  /// Clocks are set back by fractions of a second all the time, and by hours where a machine had a wrong one: then nobody
  /// knows how old what is kept is, and it would stay fresh until the clock has caught up.
  public static let clockTolerance = 60

  /// Whether its age is known at `now`: not where the clock was set back behind its coming in.
  public func isOfThePast(at now: UnixTime) -> Bool {
    receivedAt.seconds - now.seconds <= Self.clockTolerance
  }

  /// Whether it may be served at `now` without asking the origin: younger than its lifetime, and its age is known.
  public func isFresh(at now: UnixTime) -> Bool {
    age(at: now) < lifetime && isOfThePast(at: now)
  }

  /// For how many seconds it is still fresh at `now`; negative where it is stale (RFC 9211, section 2.4).
  public func timeToLive(at now: UnixTime) -> Int { lifetime - age(at: now) }

  /// The same, of an answer that another takes the place of: fresh for no more than `seconds` from `now` on.
  public func ending(within seconds: Int, of now: UnixTime) -> Freshness {
    Freshness(
      receivedAt: receivedAt, initialAge: initialAge,
      lifetime: min(lifetime, age(at: now) + seconds),
      isStorable: isStorable, mayBeStale: mayBeStale, staleWhileRevalidate: staleWhileRevalidate,
      staleIfError: staleIfError, isStated: isStated,
      clientLifetime: min(clientLifetime, age(at: now) + seconds), clientTime: clientTime)
  }

  /// The same for what is damaged, or not known to be whole: at most a minute from `now`, and never stale.
  public func ofDamaged(at now: UnixTime) -> Freshness {
    var short = ending(within: 60, of: now)
    (short.staleWhileRevalidate, short.staleIfError) = (0, 0)
    return short
  }

  /// Whether it may be served at `now` at once while the origin is asked (RFC 5861, section 3). Ages are cut to whole
  /// seconds, so the last of them is over when as many were counted.
  public func mayBeServedWhileRevalidating(at now: UnixTime) -> Bool {
    isOfThePast(at: now) && -timeToLive(at: now) < staleWhileRevalidate
  }

  /// Whether it may be served at `now` though the origin cannot be had (RFC 5861, section 4). Where the clock was set back
  /// it may: that it is too old is not known either.
  public func mayBeServedOnError(at now: UnixTime) -> Bool {
    isOfThePast(at: now) ? -timeToLive(at: now) < staleIfError : staleIfError > 0
  }

  /// Whether it may be served at `now`, unasked, to a request with these demands (RFC 9111, sections 4.2 and 5.2.1).
  ///
  /// What is immutable satisfies `max-age=0` as long as it is fresh: a browser's reload sends that of everything on a
  /// page, and nothing can have changed (RFC 8246, section 2).
  public func satisfies(_ demands: AgeDemands, at now: UnixTime) -> Bool {
    guard isOfThePast(at: now) else { return false }
    let age = age(at: now)
    let rest = lifetime - age
    if let maxAge = demands.maxAge, age > maxAge {
      guard maxAge == 0, isImmutable, rest > 0 else { return false }
    }
    if let minFresh = demands.minFresh { return rest >= minFresh }
    // Fresh as `isFresh` has it, or stale for no longer than will do: to the request, and to the origin at all.
    return rest > 0 || mayBeStale && demands.maxStale.map { -rest <= $0 } ?? false
  }
}

/// What an origin's answer said besides its body; header values as received, `nil` where absent.
public struct OriginResponse: Hashable, Sendable, Codable {
  /// The final status, after redirects.
  public var status: Int
  /// `Content-Type`; only logged, since the bytes decide.
  public var contentType: String?
  /// `Cache-Control`, several joined by commas.
  public var cacheControl: String?
  /// `Expires`.
  public var expires: String?
  /// `Date`.
  public var date: String?
  /// `Age`.
  public var age: String?
  /// `Last-Modified`.
  public var lastModified: String?
  /// `ETag`.
  public var etag: String?
  /// `Vary`, several joined by commas.
  public var vary: String?
  /// The answers of the redirects that led here, in their order.
  public var redirects: [OriginResponse] = []

  /// An answer with this status and no headers.
  public init(status: Int) { self.status = status }
}
