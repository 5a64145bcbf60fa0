// FreshnessRules: for how long an origin's answer is fresh, after RFC 9111, and how long it may be served stale, after
// RFC 5861.

import Model

/// RFC 9111 for a shared cache, with RFC 5861 and RFC 8246.
public struct FreshnessRules: FreshnessPolicy {
  private let configuration: FreshnessConfiguration

  /// The rules with these bounds and defaults.
  public init(_ configuration: FreshnessConfiguration = FreshnessConfiguration()) {
    self.configuration = configuration
  }

  /// See `FreshnessPolicy`.
  ///
  /// A local file is as fresh as its reader says: bounds and defaults are for origins.
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
    // What the configuration allows is no word of the origin's against its own `s-maxage`.
    let hasDefaults = !isLocal && control.sharedMaxAge == nil
    let client = isSelected ? Self.clientLifetime(of: origin, control, receivedAt) : 0
    let own = Freshness(
      receivedAt: receivedAt,
      initialAge: Self.initialAge(
        of: origin, delay: receivedAt.seconds - requestedAt.seconds, receivedAt),
      lifetime: lifetime,
      isStorable: !control.forbidsStoring && (!isAuthorized || control.allowsAuthorized),
      mayBeStale: control.mayBeStale && isSelected,
      // An origin that wants to be asked each time is asked each time, unless it says otherwise itself.
      staleWhileRevalidate: control.staleWhileRevalidate
        ?? (assumed > 0 && hasDefaults ? bounds.staleWhileRevalidate : 0),
      staleIfError: control.staleIfError ?? (hasDefaults ? bounds.staleIfError : 0),
      isImmutable: control.immutable, isStated: stated != nil && !isLocal,
      clientLifetime: client.map { min($0, bounds.maximumLifetime) },
      clientTime: isLocal || client != nil ? Freshness.unlimited : bounds.clientDefault)
    return origin.redirects
      .compactMap { Self.freshness(ofRedirect: $0, bounds, keepsCookies, receivedAt: requestedAt) }
      .reduce(own) { $0.combined(with: $1) }
  }

  /// What a redirect on the way says of what it leads to; `nil`: nothing. What it leaves open bounds nothing.
  ///
  /// - Parameter now: when it came in. All hops are taken to have come when the first was asked for.
  private static func freshness(
    ofRedirect origin: OriginResponse, _ bounds: FreshnessBounds, _ keepsCookies: Bool,
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

  /// What the origin says to shared caches, in the order of RFC 9111, section 4.2.1; `nil`: nothing.
  private static func statedLifetime(
    of origin: OriginResponse, _ control: CacheControl, _ now: UnixTime
  ) -> Int? {
    control.noCache ? 0 : control.sharedMaxAge ?? clientLifetime(of: origin, control, now)
  }

  /// What the origin says to every cache, those of clients included; `nil`: nothing. An `Expires` that is no date is in
  /// the past (section 5.3), however near to one it comes.
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

  /// Section 4.2.2: nothing explicit is said, and what has not changed for long will not change soon. A tenth of that time
  /// is the fraction the section calls typical.
  private static func assumedLifetime(
    of origin: OriginResponse, _ bounds: FreshnessBounds, _ now: UnixTime
  ) -> Int {
    guard bounds.heuristicLifetime > 0,
      let modified = origin.lastModified.flatMap({ HTTPDate.parse($0, now: now) })
    else { return bounds.defaultLifetime }
    let date = origin.date.flatMap { HTTPDate.parse($0, now: now) } ?? now
    return min(max(date.seconds - modified.seconds, 0) / 10, bounds.heuristicLifetime)
  }

  /// RFC 9111, section 4.2.3, corrected_initial_age: the greater of what `Age` says, with the time that asking took on
  /// top, and what `Date` shows. Of several ages the first counts; one that cannot be read counts as none.
  private static func initialAge(of origin: OriginResponse, delay: Int, _ now: UnixTime) -> Int {
    let first = origin.age?.split(separator: ",", maxSplits: 1).first
    let stated = first.flatMap { CacheControl.seconds($0.trimmed) } ?? 0
    let date = origin.date.flatMap { HTTPDate.parse($0, now: now) } ?? now
    return max(stated + max(delay, 0), now.seconds - date.seconds, 0)
  }

  /// Whether what is kept may not be the answer to the very same request (RFC 9111, section 4.1).
  ///
  /// What origins are sent is the same for all clients, but for what host rules forward, and that is part of the key. So a
  /// kept answer is the selected one, with two exceptions: `*`, which nothing matches, and cookies of our own jar, which
  /// may be others the next time.
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
