// FreshnessRules: how long a response is fresh (RFC 9111) and how long it may be served stale (RFC
// 5861).

import Model

/// The freshness rules of a shared cache: RFC 9111, RFC 5861 and RFC 8246.
public struct FreshnessRules: FreshnessPolicy {
  private let configuration: FreshnessConfiguration

  /// Creates the rules with these settings.
  public init(_ configuration: FreshnessConfiguration = FreshnessConfiguration()) {
    self.configuration = configuration
  }

  /// See `FreshnessPolicy`.
  ///
  /// A local file has the lifetime that its reader states. Bounds and defaults apply to origins
  /// only.
  public func freshness(
    of origin: OriginResponse, from url: SourceURL, isAuthorized: Bool, requestedAt: UnixTime,
    receivedAt: UnixTime
  ) -> Freshness {
    let (bounds, keepsCookies) = configuration.bounds(for: url)
    let control = origin.cacheControl.map(CacheControl.init) ?? CacheControl()
    let isSelected = !Self.varies(origin.vary, keepsCookies: keepsCookies)
    let stated = isSelected ? Self.statedLifetime(of: origin, control, receivedAt) : 0
    let assumed = stated ?? Self.assumedLifetime(of: origin, bounds, receivedAt)
    let isLocal = url.scheme == .local
    let lifetime = isLocal || !isSelected ? assumed : bounds.bounding(assumed)
    // A configured default does not override the origin's `s-maxage`, which forbids stale
    // responses.
    let hasDefaults = !isLocal && control.sharedMaxAge == nil
    let client = isSelected ? Self.clientLifetime(of: origin, control, receivedAt) : 0
    let own = Freshness(
      receivedAt: receivedAt,
      initialAge: Self.initialAge(
        of: origin, delay: receivedAt.seconds - requestedAt.seconds, receivedAt),
      lifetime: lifetime,
      isStorable: !control.forbidsStoring && (!isAuthorized || control.allowsAuthorized),
      mayBeStale: control.mayBeStale && isSelected,
      // If the origin requires revalidation for each use, the default does not apply.
      staleWhileRevalidate: control.staleWhileRevalidate
        ?? (assumed > 0 && hasDefaults ? bounds.staleWhileRevalidate.flooredSeconds : 0),
      staleIfError: control.staleIfError ?? (hasDefaults ? bounds.staleIfError.flooredSeconds : 0),
      isImmutable: control.immutable, isStated: stated != nil && !isLocal,
      clientLifetime: client.map { min($0, bounds.maximumLifetime.flooredSeconds) },
      clientTime: isLocal || client != nil
        ? Freshness.unlimited : bounds.clientDefault.flooredSeconds)
    return origin.redirects
      .compactMap { Self.freshness(ofRedirect: $0, bounds, keepsCookies, receivedAt: requestedAt) }
      .reduce(own) { $0.combined(with: $1) }
  }

  /// Returns the freshness that a redirect allows for its target, or `nil` if the redirect states
  /// none. Values that it does not state are unlimited.
  ///
  /// - Parameter now: when the redirect was received. All redirects count as received when the
  ///   first one was requested.
  private static func freshness(
    ofRedirect origin: OriginResponse, _ bounds: FreshnessSettings, _ keepsCookies: Bool,
    receivedAt now: UnixTime
  ) -> Freshness? {
    let control = origin.cacheControl.map(CacheControl.init) ?? CacheControl()
    let isSelected = !varies(origin.vary, keepsCookies: keepsCookies)
    guard origin.cacheControl != nil || origin.expires != nil || !isSelected else { return nil }
    let stated = isSelected ? statedLifetime(of: origin, control, now) : 0
    let client = isSelected ? clientLifetime(of: origin, control, now) : 0
    return Freshness(
      receivedAt: now, initialAge: initialAge(of: origin, delay: 0, now),
      lifetime: stated.map { isSelected ? bounds.bounding($0) : $0 } ?? Freshness.unlimited,
      isStorable: !control.forbidsStoring, mayBeStale: control.mayBeStale && isSelected,
      staleWhileRevalidate: control.staleWhileRevalidate ?? (stated == 0 ? 0 : Freshness.unlimited),
      staleIfError: control.staleIfError ?? Freshness.unlimited,
      isImmutable: control.immutable || stated == nil, isStated: stated != nil,
      clientLifetime: client ?? Freshness.unlimited)
  }

  /// Returns the lifetime that the origin states for shared caches, in the order of RFC 9111,
  /// section 4.2.1; `nil` if none.
  private static func statedLifetime(
    of origin: OriginResponse, _ control: CacheControl, _ now: UnixTime
  ) -> Int? {
    control.noCache ? 0 : control.sharedMaxAge ?? clientLifetime(of: origin, control, now)
  }

  /// Returns the lifetime that the origin states for all caches, clients included; `nil` if none.
  /// An invalid `Expires` counts as a time in the past (section 5.3).
  private static func clientLifetime(
    of origin: OriginResponse, _ control: CacheControl, _ now: UnixTime
  ) -> Int? {
    if control.noCache { return 0 }
    if let maxAge = control.maxAge { return maxAge }
    guard let expires = origin.expires else { return nil }
    guard let end = HTTPDate.parseExactly(expires, now: now) else { return 0 }
    let date = origin.date.flatMap { HTTPDate.parse($0, now: now) } ?? now
    return min(max(end.seconds - date.seconds, 0), CacheControl.maximumSeconds)
  }

  /// Returns the heuristic lifetime (section 4.2.2): a tenth of the time since the last
  /// modification, the fraction that the section calls typical.
  private static func assumedLifetime(
    of origin: OriginResponse, _ bounds: FreshnessSettings, _ now: UnixTime
  ) -> Int {
    let longest = bounds.heuristicLifetime.flooredSeconds
    guard longest > 0,
      let modified = origin.lastModified.flatMap({ HTTPDate.parse($0, now: now) })
    else { return bounds.defaultLifetime.flooredSeconds }
    let date = origin.date.flatMap { HTTPDate.parse($0, now: now) } ?? now
    return min(max(date.seconds - modified.seconds, 0) / 10, longest)
  }

  /// Returns the corrected_initial_age (RFC 9111, section 4.2.3): the greater of the `Age` header
  /// plus the response delay, and the time since `Date`. Only the first value of several ages
  /// counts; an invalid value counts as 0.
  private static func initialAge(of origin: OriginResponse, delay: Int, _ now: UnixTime) -> Int {
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
