// Freshness: how old something kept is and how long it may be served unasked (RFC 9111, section 4.2).

import Glibc

/// A moment, in whole seconds since 1970-01-01 UTC, as HTTP dates and ages count.
public struct UnixTime: Hashable, Comparable, Sendable, Codable {
  /// Seconds since 1970-01-01 UTC.
  public let seconds: Int

  /// A moment so many seconds after 1970-01-01 UTC.
  public init(seconds: Int) { self.seconds = seconds }

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
  public let staleWhileRevalidate: Int
  /// For how many seconds after its lifetime it may be served where the origin cannot be had (RFC 5861, section 4).
  public let staleIfError: Int
  /// Whether the origin says that it will not change while it is fresh (RFC 8246).
  public let isImmutable: Bool

  /// Freshness as computed from an origin's answer; times in seconds, never negative. What must not be stale gets no
  /// time to be so.
  public init(
    receivedAt: UnixTime, initialAge: Int = 0, lifetime: Int, isStorable: Bool = true,
    mayBeStale: Bool = true, staleWhileRevalidate: Int = 0, staleIfError: Int = 0,
    isImmutable: Bool = false
  ) {
    self.receivedAt = receivedAt
    self.initialAge = max(initialAge, 0)
    self.lifetime = max(lifetime, 0)
    self.isStorable = isStorable
    self.mayBeStale = mayBeStale
    self.staleWhileRevalidate = mayBeStale ? max(staleWhileRevalidate, 0) : 0
    self.staleIfError = mayBeStale ? max(staleIfError, 0) : 0
    self.isImmutable = isImmutable
  }

  /// Of what is made of two answers: stale as soon as one of them is, and with leave only for what both leave.
  public func combined(with other: Freshness) -> Freshness {
    func end(_ freshness: Freshness) -> Int {
      let left = freshness.lifetime - freshness.initialAge
      // Lifetimes may be as long as an origin likes to say.
      let (end, isTooLate) = freshness.receivedAt.seconds.addingReportingOverflow(left)
      return isTooLate ? .max : end
    }
    let first = end(self) <= end(other) ? self : other
    return Freshness(
      receivedAt: first.receivedAt, initialAge: first.initialAge, lifetime: first.lifetime,
      isStorable: isStorable && other.isStorable, mayBeStale: mayBeStale && other.mayBeStale,
      staleWhileRevalidate: min(staleWhileRevalidate, other.staleWhileRevalidate),
      staleIfError: min(staleIfError, other.staleIfError),
      isImmutable: isImmutable && other.isImmutable)
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
      staleIfError: staleIfError)
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

  /// An answer with this status and no headers.
  public init(status: Int) { self.status = status }
}
