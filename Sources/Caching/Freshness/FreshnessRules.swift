// FreshnessRules: how long a response is fresh (RFC 9111) and how long it may be served stale (RFC
// 5861).

import Model
import Platform

/// The freshness rules of a shared cache: RFC 9111, RFC 5861 and RFC 8246.
public final class FreshnessRules: FreshnessPolicy {
  private let current: Lock<FreshnessConfiguration>

  /// Creates the rules with these settings.
  public init(_ configuration: FreshnessConfiguration = FreshnessConfiguration()) {
    current = Lock(configuration)
  }

  /// Applies other settings to responses that arrive from now on.
  public func apply(_ wanted: FreshnessConfiguration) { current.withLock { $0 = wanted } }

  /// See `FreshnessPolicy`.
  ///
  /// A local file has the lifetime that its reader states. Bounds and defaults apply to origins
  /// only.
  public func freshness(
    of origin: OriginResponse, from url: SourceURL, isAuthorized: Bool, at now: Moment
  ) -> Freshness {
    let receivedAt = Self.receiveTime(of: origin, now)
    let (settings, keepsCookies) = current.withLock { $0 }.settings(for: url)
    let control = origin.cacheControl.map(CacheControl.init) ?? CacheControl()
    let isReusable = !Self.varies(origin.vary, keepsCookies: keepsCookies)
    let stated = isReusable ? Self.statedLifetime(of: origin, control: control, at: receivedAt) : 0
    let assumed = stated ?? Self.assumedLifetime(of: origin, settings: settings, at: receivedAt)
    let isLocal = url.scheme == .local
    let lifetime = isLocal || !isReusable ? assumed : settings.bounding(assumed)
    // A configured default does not override the origin's `s-maxage`, which forbids stale
    // responses.
    let hasDefaults = !isLocal && control.sharedMaxAge == nil
    let client = isReusable ? Self.clientLifetime(of: origin, control: control, at: receivedAt) : 0
    let own = Freshness(
      receivedAt: receivedAt,
      initialAge: Self.initialAge(of: origin, receivedAt),
      lifetime: lifetime,
      isStorable: control.allowsStoring(isAuthorized: isAuthorized),
      mayBeStale: control.mayBeStale && isReusable,
      // If the origin requires revalidation for each use, the default does not apply.
      staleWhileRevalidate: control.staleWhileRevalidate
        ?? (assumed > 0 && hasDefaults ? settings.staleWhileRevalidate.flooredSeconds : 0),
      staleIfError: control.staleIfError
        ?? (hasDefaults ? settings.staleIfError.flooredSeconds : 0),
      isImmutable: control.immutable, isStated: stated != nil && !isLocal,
      clientLifetime: client.map { min($0, settings.maximumLifetime.flooredSeconds) },
      clientTime: isLocal || client != nil
        ? Freshness.unlimited : settings.clientDefault.flooredSeconds)
    return origin.redirects
      .compactMap {
        Self.freshness(
          ofRedirect: $0, settings: settings, keepsCookies: keepsCookies,
          isAuthorized: isAuthorized, receivedAt: Self.receiveTime(of: $0, now))
      }
      .reduce(own) { $0.combined(with: $1) }
  }

  /// Returns the freshness that a redirect allows for its target, or `nil` if the redirect states
  /// none. Values that it does not state are unlimited. If the request had credentials, a redirect
  /// without directives forbids storing (section 3.5).
  ///
  /// - Parameter now: when the redirect was received.
  private static func freshness(
    ofRedirect origin: OriginResponse, settings: FreshnessSettings, keepsCookies: Bool,
    isAuthorized: Bool, receivedAt now: UnixTime
  ) -> Freshness? {
    let control = origin.cacheControl.map(CacheControl.init) ?? CacheControl()
    let isReusable = !varies(origin.vary, keepsCookies: keepsCookies)
    guard origin.cacheControl != nil || origin.expires != nil || !isReusable || isAuthorized else {
      return nil
    }
    let stated = isReusable ? statedLifetime(of: origin, control: control, at: now) : 0
    let client = isReusable ? clientLifetime(of: origin, control: control, at: now) : 0
    // Beside `s-maxage`, a stale time that is not stated permits nothing.
    let unstated = control.sharedMaxAge == nil ? Freshness.unlimited : 0
    return Freshness(
      receivedAt: now, initialAge: initialAge(of: origin, now),
      lifetime: stated.map { isReusable ? settings.bounding($0) : $0 } ?? Freshness.unlimited,
      isStorable: control.allowsStoring(isAuthorized: isAuthorized),
      mayBeStale: control.mayBeStale && isReusable,
      staleWhileRevalidate: control.staleWhileRevalidate ?? (stated == 0 ? 0 : unstated),
      staleIfError: control.staleIfError ?? unstated,
      isImmutable: control.immutable || stated == nil, isStated: stated != nil,
      clientLifetime: client ?? Freshness.unlimited)
  }

  /// Returns when a response was received.
  private static func receiveTime(of origin: OriginResponse, _ now: Moment) -> UnixTime {
    origin.exchange.map { now.time(of: $0.receivedAt) } ?? now.time
  }

  /// Returns the lifetime that the origin states for shared caches, in the order of RFC 9111,
  /// section 4.2.1; `nil` if none.
  private static func statedLifetime(
    of origin: OriginResponse, control: CacheControl, at now: UnixTime
  ) -> Int? {
    control.noCache
      ? 0 : control.sharedMaxAge ?? clientLifetime(of: origin, control: control, at: now)
  }

  /// Returns the lifetime that the origin states for all caches, clients included; `nil` if none.
  /// An invalid `Expires` counts as a time in the past (section 5.3).
  private static func clientLifetime(
    of origin: OriginResponse, control: CacheControl, at now: UnixTime
  ) -> Int? {
    if control.noCache { return 0 }
    if let maxAge = control.maxAge { return maxAge }
    guard let expires = origin.expires else { return nil }
    guard let end = HTTPDate.parseExactly(expires, now: now) else { return 0 }
    let date = origin.date.flatMap { HTTPDate.parse($0, now: now) } ?? now
    return min(max(end.seconds - date.seconds, 0), CacheControl.maximumSeconds)
  }

  /// Returns the lifetime of a response that states none: the heuristic lifetime (section 4.2.2), a
  /// tenth of the time since the last modification up to the configured maximum, or the default
  /// lifetime if the heuristic is off or the last modification is unknown. In seconds.
  private static func assumedLifetime(
    of origin: OriginResponse, settings: FreshnessSettings, at now: UnixTime
  ) -> Int {
    let longest = settings.heuristicLifetime.flooredSeconds
    guard longest > 0,
      let modified = origin.lastModified.flatMap({ HTTPDate.parse($0, now: now) })
    else { return settings.defaultLifetime.flooredSeconds }
    let date = origin.date.flatMap { HTTPDate.parse($0, now: now) } ?? now
    return min(max(date.seconds - modified.seconds, 0) / 10, longest)
  }

  /// Returns the corrected_initial_age (RFC 9111, section 4.2.3): the greater of the `Age` header
  /// plus the response delay, and the time since `Date`. Only the first value of several ages
  /// counts; an invalid value counts as 0.
  private static func initialAge(of origin: OriginResponse, _ now: UnixTime) -> Int {
    let delay = origin.exchange?.delay ?? 0
    let first = origin.age?.split(separator: ",", maxSplits: 1).first
    let stated = first.flatMap { CacheControl.seconds($0.trimmed) } ?? 0
    let date = origin.date.flatMap { HTTPDate.parse($0, now: now) } ?? now
    return max(stated + max(delay, 0), now.seconds - date.seconds, 0)
  }

  /// Returns whether the stored response may not match the same request later (RFC 9111, section
  /// 4.1).
  ///
  /// Requests to origins are the same for all clients. Forwarded headers differ, but they are part
  /// of the key. So a stored response matches, with two exceptions: `Vary: *`, and `Vary: Cookie`
  /// with cookies from the jar, which may change.
  private static func varies(_ vary: String?, keepsCookies: Bool) -> Bool {
    guard let vary else { return false }
    return vary.split(separator: ",").contains { member in
      let name = member.trimmed.lowercased()
      return name == "*" || keepsCookies && name == "cookie"
    }
  }
}

extension Substring {
  fileprivate var trimmed: Substring {
    var text = drop { $0 == " " || $0 == "\t" }
    while let last = text.last, last == " " || last == "\t" { text.removeLast() }
    return text
  }
}
