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
    of origin: OriginResponse, from url: SourceURL, requestedAt: UnixTime, receivedAt now: UnixTime
  ) -> Freshness {
    let control = origin.cacheControl.map(CacheControl.init) ?? CacheControl()
    let (bounds, keepsCookies) = configuration.bounds(for: url)
    let isSelected = !Self.varies(origin.vary, keepsCookies: keepsCookies)
    let stated = isSelected ? lifetime(of: origin, control, bounds, now) : 0
    let isLocal = url.scheme == .local
    // What the configuration allows is no word of the origin's against its own `s-maxage`.
    let hasDefaults = !isLocal && control.sharedMaxAge == nil
    return Freshness(
      receivedAt: now,
      initialAge: initialAge(of: origin, delay: now.seconds - requestedAt.seconds, now),
      lifetime: isLocal || !isSelected ? stated : bounds.bounding(stated),
      isStorable: !control.noStore && !control.isPrivate,
      mayBeStale: control.mayBeStale && isSelected,
      // An origin that wants to be asked each time is asked each time, unless it says otherwise itself.
      staleWhileRevalidate: control.staleWhileRevalidate
        ?? (stated > 0 && hasDefaults ? bounds.staleWhileRevalidate : 0),
      staleIfError: control.staleIfError ?? (hasDefaults ? bounds.staleIfError : 0),
      isImmutable: control.immutable)
  }

  /// RFC 9111, section 4.2.1, in its order; an `Expires` that cannot be read is in the past (section 5.3).
  private func lifetime(
    of origin: OriginResponse, _ control: CacheControl, _ bounds: FreshnessBounds, _ now: UnixTime
  ) -> Int {
    if control.noCache { return 0 }
    if let explicit = control.sharedMaxAge ?? control.maxAge { return explicit }
    let date = origin.date.flatMap { HTTPDate.parse($0, now: now) } ?? now
    if let expires = origin.expires {
      guard let end = HTTPDate.parse(expires, now: now) else { return 0 }
      return min(max(end.seconds - date.seconds, 0), CacheControl.maximumSeconds)
    }
    // Section 4.2.2: nothing explicit is said, and what has not changed for long will not change soon. A tenth of that
    // time is the fraction the section calls typical.
    guard let modified = origin.lastModified.flatMap({ HTTPDate.parse($0, now: now) }) else {
      return bounds.defaultLifetime
    }
    return min(max(date.seconds - modified.seconds, 0) / 10, bounds.defaultLifetime)
  }

  /// RFC 9111, section 4.2.3, corrected_initial_age: the greater of what `Age` says, with the time that asking took on
  /// top, and what `Date` shows. Of several ages the first counts; one that cannot be read counts as none.
  private func initialAge(of origin: OriginResponse, delay: Int, _ now: UnixTime) -> Int {
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
