// FreshnessRules: for how long an origin's answer is fresh, after RFC 9111.

import Model

/// What the freshness rules can be told.
public struct FreshnessConfiguration: Sendable {
  /// For how many seconds an answer is fresh where its origin does not say; SDWebImage's maximum age, one week.
  public var defaultLifetime = 604_800

  /// The defaults.
  public init() {}
}

/// RFC 9111 for a shared cache.
public struct FreshnessRules: FreshnessPolicy {
  private let configuration: FreshnessConfiguration

  /// The rules with these defaults.
  public init(_ configuration: FreshnessConfiguration = FreshnessConfiguration()) {
    self.configuration = configuration
  }

  /// See `FreshnessPolicy`.
  public func freshness(
    of origin: OriginResponse, from url: SourceURL, requestedAt: UnixTime, receivedAt now: UnixTime
  ) -> Freshness {
    let control = origin.cacheControl.map(CacheControl.init) ?? CacheControl()
    return Freshness(
      receivedAt: now, initialAge: initialAge(of: origin, now),
      lifetime: lifetime(of: origin, control, now),
      isStorable: !control.noStore && !control.isPrivate, mayBeStale: control.mayBeStale)
  }

  /// RFC 9111, section 4.2.1, in its order; an `Expires` that cannot be read is in the past (section 5.3).
  private func lifetime(of origin: OriginResponse, _ control: CacheControl, _ now: UnixTime)
    -> Int
  {
    if control.noCache { return 0 }
    if let explicit = control.sharedMaxAge ?? control.maxAge { return explicit }
    if let expires = origin.expires {
      guard let end = HTTPDate.parse(expires, now: now) else { return 0 }
      let start = origin.date.flatMap { HTTPDate.parse($0, now: now) } ?? now
      return min(max(end.seconds - start.seconds, 0), CacheControl.maximumSeconds)
    }
    return configuration.defaultLifetime
  }

  /// RFC 9111, section 4.2.3, without the delay of the request itself, which is not known here: the greater of what
  /// `Age` says and what `Date` shows. Of several ages the first counts; one that cannot be read counts as none.
  private func initialAge(of origin: OriginResponse, _ now: UnixTime) -> Int {
    let first = origin.age?.split(separator: ",", maxSplits: 1).first
    let stated = first.flatMap { CacheControl.seconds($0.trimmed) } ?? 0
    let date = origin.date.flatMap { HTTPDate.parse($0, now: now) } ?? now
    return max(stated, now.seconds - date.seconds, 0)
  }
}

extension Substring {
  fileprivate var trimmed: Substring {
    var text = drop { $0 == " " || $0 == "\t" }
    while let last = text.last, last == " " || last == "\t" { text.removeLast() }
    return text
  }
}
