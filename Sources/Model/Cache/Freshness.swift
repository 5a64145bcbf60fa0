// Freshness: the age and freshness lifetime of a cached response (RFC 9111, section 4.2).

/// A point in time, in whole seconds since 1970-01-01 UTC, the resolution of HTTP dates and ages.
public struct UnixTime: Hashable, Comparable, Sendable, Codable {
  /// Seconds since 1970-01-01 UTC.
  public let seconds: Int

  /// Creates a point in time from seconds since 1970-01-01 UTC.
  public init(seconds: Int) { self.seconds = seconds }

  /// This time, clamped to a range in which differences do not overflow.
  public var bounded: UnixTime {
    UnixTime(seconds: min(max(seconds, -Freshness.maximumSeconds), Freshness.maximumSeconds))
  }

  /// The current time of the wall clock.
  public static var now: UnixTime { UnixTime(seconds: WallClock.seconds) }

  /// Compares by time.
  public static func < (left: UnixTime, right: UnixTime) -> Bool { left.seconds < right.seconds }
}

/// When a response was received and how long it is fresh.
///
/// Each variant in memory has one, so times that no valid response exceeds are stored in 32 bits.
public struct Freshness: Hashable, Sendable {
  /// The receive time, by the local clock.
  public let receivedAt: UnixTime
  /// The age at the receive time, in seconds (RFC 9111's `corrected_initial_age`).
  public let initialAge: Int
  private let storedLifetime: UInt32
  private let storedStaleWhileRevalidate: UInt32
  private let storedStaleIfError: UInt32
  private let storedClientLifetime: UInt32
  private let storedClientTime: UInt32
  /// Whether any tier may store the response (`no-store`, `private`).
  public let isStorable: Bool
  /// Whether a request may accept the response when stale. An origin may forbid it (RFC 9111,
  /// section 4.2.4).
  public let mayBeStale: Bool
  /// Whether the response does not change while fresh (RFC 8246).
  public let isImmutable: Bool
  /// Whether the origin states the lifetime. Otherwise it is a default or heuristic.
  public let isStated: Bool

  /// A time without limit: 2^31 seconds, the largest value for caches (RFC 9111, section 1.2.2).
  public static let unlimited = 1 << 31

  /// The maximum number of seconds in any field (34,000 years). Sums of a few such values cannot
  /// overflow, even if untrusted.
  public static let maximumSeconds = 1 << 40

  /// Creates a freshness. Times are in seconds. The age is clamped to `0...maximumSeconds`, the
  /// others to `0...UInt32.max`, which is above `unlimited`. If `mayBeStale` is false, both stale
  /// times become 0.
  public init(
    receivedAt: UnixTime, initialAge: Int = 0, lifetime: Int, isStorable: Bool = true,
    mayBeStale: Bool = true, staleWhileRevalidate: Int = 0, staleIfError: Int = 0,
    isImmutable: Bool = false, isStated: Bool = true, clientLifetime: Int? = nil,
    clientTime: Int = Freshness.unlimited
  ) {
    self.receivedAt = receivedAt.bounded
    self.initialAge = min(max(initialAge, 0), Self.maximumSeconds)
    storedLifetime = UInt32(clamping: lifetime)
    storedStaleWhileRevalidate = mayBeStale ? UInt32(clamping: staleWhileRevalidate) : 0
    storedStaleIfError = mayBeStale ? UInt32(clamping: staleIfError) : 0
    storedClientLifetime = UInt32(clamping: clientLifetime ?? lifetime)
    storedClientTime = UInt32(clamping: clientTime)
    self.isStorable = isStorable
    self.mayBeStale = mayBeStale
    self.isImmutable = isImmutable
    self.isStated = isStated
  }

  /// The freshness lifetime in seconds, from the response's generation (RFC 9111's
  /// `freshness_lifetime`).
  public var lifetime: Int { Int(storedLifetime) }
  /// How many seconds after its lifetime the response may be served during a revalidation (RFC
  /// 5861, section 3).
  public var staleWhileRevalidate: Int { Int(storedStaleWhileRevalidate) }
  /// How many seconds after its lifetime the response may be served if the origin fails (RFC 5861,
  /// section 4).
  public var staleIfError: Int { Int(storedStaleIfError) }
  /// The freshness lifetime in private caches, in seconds (RFC 9111's `max-age`; `s-maxage` does
  /// not apply there).
  public var clientLifetime: Int { Int(storedClientLifetime) }
  /// The maximum time in private caches, in seconds from now, if the origin states none. A purge
  /// cannot reach those caches.
  public var clientTime: Int { Int(storedClientTime) }

  /// Returns the freshness of content made from two responses: the shorter lifetime and only the
  /// permissions both have.
  public func combined(with other: Freshness) -> Freshness {
    func end(of freshness: Freshness, lifetime: Int) -> Int {
      let left = lifetime - freshness.initialAge
      // Untrusted lifetimes may overflow the sum.
      let (end, isTooLate) = freshness.receivedAt.seconds.addingReportingOverflow(left)
      return isTooLate ? .max : end
    }
    let first =
      end(of: self, lifetime: lifetime) <= end(of: other, lifetime: other.lifetime) ? self : other
    let clientEnd = min(
      end(of: self, lifetime: clientLifetime), end(of: other, lifetime: other.clientLifetime))
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

  /// Returns the age in seconds at `now` (RFC 9111, section 4.2.3). A clock that was set back
  /// cannot make it smaller than `initialAge`.
  public func age(at now: UnixTime) -> Int {
    initialAge + max(now.seconds - receivedAt.seconds, 0)
  }

  /// How far a receive time may lie in the future, in seconds, before the age counts as unknown.
  ///
  /// Clocks often step back by fractions of a second. A step of hours corrects a wrong clock. Then
  /// the true age is unknown, and the entry would stay fresh until the clock catches up.
  public static let clockTolerance = 60

  /// Returns whether the age is known at `now`: the receive time is not in the future.
  public func isOfThePast(at now: UnixTime) -> Bool {
    receivedAt.seconds - now.seconds <= Self.clockTolerance
  }

  /// Returns whether the response is fresh at `now`: its age is known and below its lifetime.
  public func isFresh(at now: UnixTime) -> Bool {
    age(at: now) < lifetime && isOfThePast(at: now)
  }

  /// Returns the remaining lifetime in seconds; negative if stale (RFC 9211, section 2.4).
  public func timeToLive(at now: UnixTime) -> Int { lifetime - age(at: now) }

  /// Returns a freshness that ends at most `seconds` after `now`, for a substitute response. The
  /// result is never immutable.
  public func ending(within seconds: Int, of now: UnixTime) -> Freshness {
    ending(within: seconds, of: now, mayBeStale: mayBeStale)
  }

  /// Returns the freshness of a damaged or unverified image: at most a minute from `now`, and never
  /// stale, also if a request accepts that.
  public func ofDamaged(at now: UnixTime) -> Freshness {
    ending(within: 60, of: now, mayBeStale: false)
  }

  private func ending(within seconds: Int, of now: UnixTime, mayBeStale: Bool) -> Freshness {
    Freshness(
      receivedAt: receivedAt, initialAge: initialAge,
      lifetime: min(lifetime, age(at: now) + seconds),
      isStorable: isStorable, mayBeStale: mayBeStale, staleWhileRevalidate: staleWhileRevalidate,
      staleIfError: staleIfError, isStated: isStated,
      clientLifetime: min(clientLifetime, age(at: now) + seconds), clientTime: clientTime)
  }

  /// Returns whether the response may be served stale during a revalidation (RFC 5861, section 3).
  /// Ages are truncated to whole seconds, so the comparison is strict.
  public func mayBeServedWhileRevalidating(at now: UnixTime) -> Bool {
    isOfThePast(at: now) && -timeToLive(at: now) < staleWhileRevalidate
  }

  /// Returns whether the response may be served stale if the origin fails (RFC 5861, section 4).
  /// Also allowed if the age is unknown, because the response may not be too old.
  public func mayBeServedOnError(at now: UnixTime) -> Bool {
    isOfThePast(at: now) ? -timeToLive(at: now) < staleIfError : staleIfError > 0
  }

  /// Returns whether the response satisfies a request's demands without revalidation (RFC 9111,
  /// sections 4.2 and 5.2.1).
  ///
  /// A fresh immutable response satisfies `max-age=0`, which browsers send for every resource on a
  /// reload (RFC 8246, section 2).
  public func satisfies(_ demands: AgeDemands, at now: UnixTime) -> Bool {
    guard isOfThePast(at: now) else { return false }
    let age = age(at: now)
    let rest = lifetime - age
    if let maxAge = demands.maxAge, age > maxAge {
      guard maxAge == 0, isImmutable, rest > 0 else { return false }
    }
    if let minFresh = demands.minFresh { return rest >= minFresh }
    // Fresh as in `isFresh`, or stale within the limits of request and origin.
    return rest > 0 || mayBeStale && demands.maxStale.map { -rest <= $0 } ?? false
  }
}

/// An origin's response without its body. Header values are as received, `nil` if absent.
public struct OriginResponse: Hashable, Sendable, Codable {
  /// The final status, after redirects.
  public var status: Int
  /// `Content-Type`, only logged: the format is detected from the bytes.
  public var contentType: String?
  /// `Cache-Control`, several fields joined by commas.
  public var cacheControl: String?
  /// `CDN-Cache-Control`, else `Surrogate-Control`: what counts for this cache in place of
  /// `cacheControl` and `expires` (RFC 9213, section 2.2).
  public var targetedControl: String?
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
  /// `Vary`, several fields joined by commas.
  public var vary: String?
  /// When this response was requested and received; `nil` if no origin sent it now (a local file,
  /// an upload, an entry on disk).
  public var exchange: Exchange?
  /// The redirect responses, in order.
  public var redirects: [OriginResponse] = []
  /// Whether an operator uploaded the image to this machine (`PUT /admin/cache`).
  public var isUploaded = false

  /// Creates a response with this status and no header fields.
  public init(status: Int) { self.status = status }
}

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
