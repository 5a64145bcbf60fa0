// FreshnessRules: how long a response is fresh (RFC 9111) and may be served stale (RFC 5861).

import Core

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
    let control = Self.control(of: origin)
    let isReusable = !Self.varies(origin.vary, keepsCookies: keepsCookies)
    let stated =
      isReusable ? Self.statedLifetime(of: origin, control: control, at: receivedAt) : Self.varying
    let assumed =
      (stated ?? Self.assumedLifetime(of: origin, settings: settings, at: receivedAt)).seconds
    let isLocal = !url.scheme.hasOrigin
    let lifetime = isLocal || !isReusable ? assumed : settings.bounding(assumed)
    // A configured default does not override the origin's `s-maxage`, which forbids stale
    // responses.
    let hasDefaults = !isLocal && control.sharedMaxAge == nil
    let client = isReusable ? Self.clientLifetime(of: origin, at: receivedAt)?.seconds : 0
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

  /// See `FreshnessPolicy`.
  public func rule(of origin: OriginResponse, from url: SourceURL, at now: Moment) -> String {
    guard url.scheme.hasOrigin else { return "sources.\(url.scheme.rawValue)_lifetime" }
    let receivedAt = Self.receiveTime(of: origin, now)
    let (settings, keepsCookies) = current.withLock { $0 }.settings(for: url)
    let control = Self.control(of: origin)
    guard control.allowsStoring(isAuthorized: false) else {
      return "\(control.isPrivate ? "private" : "no-store") (RFC 9111, section 3)"
    }
    guard !Self.varies(origin.vary, keepsCookies: keepsCookies) else { return Self.varying.rule }
    let lifetime =
      Self.statedLifetime(of: origin, control: control, at: receivedAt)
      ?? Self.assumedLifetime(of: origin, settings: settings, at: receivedAt)
    let bounded = settings.bounding(lifetime.seconds)
    if bounded == lifetime.seconds { return lifetime.rule }
    return "freshness.\(bounded < lifetime.seconds ? "maximum" : "minimum")_lifetime"
  }

  /// A lifetime in seconds, and the field or key that it comes from.
  private typealias Lifetime = (seconds: Int, rule: String)

  /// That of a response which may not match the same request later.
  private static let varying: Lifetime = (0, "Vary (RFC 9111, section 4.1)")

  /// Returns the freshness that a redirect allows for its target, or `nil` if the redirect states
  /// none. Values that it does not state are unlimited. If the request had credentials, a redirect
  /// without directives forbids storing (section 3.5).
  ///
  /// - Parameter now: when the redirect was received.
  private static func freshness(
    ofRedirect origin: OriginResponse, settings: FreshnessSettings, keepsCookies: Bool,
    isAuthorized: Bool, receivedAt now: UnixTime
  ) -> Freshness? {
    let control = control(of: origin)
    let isReusable = !varies(origin.vary, keepsCookies: keepsCookies)
    guard
      origin.targetedControl ?? origin.cacheControl ?? origin.expires != nil || !isReusable
        || isAuthorized
    else { return nil }
    let stated = isReusable ? statedLifetime(of: origin, control: control, at: now)?.seconds : 0
    let client = isReusable ? clientLifetime(of: origin, at: now)?.seconds : 0
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
  ) -> Lifetime? {
    if control.noCache { return (0, "no-cache (RFC 9111, section 5.2.2.4)") }
    if let age = control.sharedMaxAge { return (age, "s-maxage (RFC 9111, section 5.2.2.10)") }
    // Not the fields for clients, where there is one for this cache.
    guard origin.targetedControl != nil else { return clientLifetime(of: origin, at: now) }
    return control.maxAge.map { ($0, "max-age for CDNs (RFC 9213, section 2.2)") }
  }

  /// Returns the directives for this cache: targeted ones (RFC 9213, section 2.2), or all.
  private static func control(of origin: OriginResponse) -> CacheControl {
    (origin.targetedControl ?? origin.cacheControl).map(CacheControl.init) ?? CacheControl()
  }

  /// Returns the lifetime that the origin states for all caches, clients included; `nil` if none.
  /// An invalid `Expires` counts as a time in the past (section 5.3).
  private static func clientLifetime(of origin: OriginResponse, at now: UnixTime) -> Lifetime? {
    let control = origin.cacheControl.map(CacheControl.init) ?? CacheControl()
    // Where this cache may store what clients may not, they ask each time.
    if control.noCache || origin.targetedControl != nil && control.forbidsStoring {
      return (0, "no-cache (RFC 9111, section 5.2.2.4)")
    }
    if let maxAge = control.maxAge { return (maxAge, "max-age (RFC 9111, section 5.2.2.1)") }
    guard let expires = origin.expires else { return nil }
    let rule = "Expires (RFC 9111, section 5.3)"
    guard let end = HTTPDate.parseExactly(expires, now: now) else { return (0, rule) }
    let date = origin.date.flatMap { HTTPDate.parse($0, now: now) } ?? now
    return (min(max(end.seconds - date.seconds, 0), CacheControl.maximumSeconds), rule)
  }

  /// Returns the lifetime of a response that states none: the heuristic lifetime (section 4.2.2), a
  /// tenth of the time since the last modification up to the configured maximum, or the default
  /// lifetime if the heuristic is off or the last modification is unknown. In seconds.
  private static func assumedLifetime(
    of origin: OriginResponse, settings: FreshnessSettings, at now: UnixTime
  ) -> Lifetime {
    let longest = settings.heuristicLifetime.flooredSeconds
    guard longest > 0,
      let modified = origin.lastModified.flatMap({ HTTPDate.parse($0, now: now) })
    else { return (settings.defaultLifetime.flooredSeconds, "freshness.default_lifetime") }
    let date = origin.date.flatMap { HTTPDate.parse($0, now: now) } ?? now
    let tenth = max(date.seconds - modified.seconds, 0) / 10
    return (min(tenth, longest), "a tenth since Last-Modified (RFC 9111, section 4.2.2)")
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

/// The settings of the freshness rules, with the overrides of host rules.
public struct FreshnessConfiguration: PartConfiguration {
  /// The keys `freshness.…`, for all hosts.
  public var settings: FreshnessSettings
  /// The rules for some hosts. The first matching rule applies.
  public var hostRules: [HostRule]

  /// Creates the configuration of freshness rules.
  public init(
    _ settings: FreshnessSettings = FreshnessSettings(), hostRules: [HostRule] = []
  ) {
    self.settings = settings
    self.hostRules = hostRules
  }

  /// The longest lifetime that the rules give to any response, in seconds.
  public var longestLifetime: Int {
    hostRules.reduce(settings.bounding(.max)) { longest, rule in
      max(longest, settings.overridden(by: rule.freshness).bounding(.max))
    }
  }

  /// Returns the settings for a URL, and whether its origin gets cookies from a cookie jar.
  func settings(for url: SourceURL) -> (FreshnessSettings, keepsCookies: Bool) {
    guard let rule = hostRules.first(where: { $0.covers(url) }) else {
      return (settings, false)
    }
    return (settings.overridden(by: rule.freshness), rule.keepsCookies)
  }
}

extension FreshnessSettings {
  /// Returns a lifetime in seconds within the bounds. The minimum wins if the bounds contradict
  /// each other.
  func bounding(_ lifetime: Int) -> Int {
    max(min(lifetime, maximumLifetime.flooredSeconds), minimumLifetime.flooredSeconds)
  }
}

/// The directives of an origin's `Cache-Control` header. Unknown directives are ignored.
struct CacheControl: Equatable {
  /// `no-store`: the response must not be stored.
  var noStore = false
  /// `no-cache`: the response must be revalidated before each use. With field names it covers only
  /// those fields. A cache may treat it as unqualified (section 5.2.2.4), and this one does.
  var noCache = false
  /// `private`: a shared cache must not store the response. Field names are ignored, as for
  /// `no-cache`.
  var isPrivate = false
  /// `must-revalidate`: a stale response must not be served without revalidation (section 5.2.2.2).
  var mustRevalidate = false
  /// `proxy-revalidate`: as `must-revalidate`, for shared caches alone (section 5.2.2.8). It does
  /// not permit storing the response to a request with credentials.
  var proxyRevalidate = false
  /// `public`: a shared cache may store the response to a request with credentials (section
  /// 5.2.2.9).
  var isPublic = false
  /// `must-understand`: a cache that understands the status code ignores `no-store` (section
  /// 5.2.2.3).
  var mustUnderstand = false
  /// `max-age` in seconds.
  var maxAge: Int?
  /// `s-maxage` in seconds: overrides `max-age` in shared caches.
  var sharedMaxAge: Int?

  /// `stale-while-revalidate` in seconds (RFC 5861, section 3).
  var staleWhileRevalidate: Int?
  /// `stale-if-error` in seconds (RFC 5861, section 4).
  var staleIfError: Int?
  /// `immutable`: the body does not change while the response is fresh (RFC 8246).
  var immutable = false

  /// Whether the response must not be stored. `must-understand` overrides `no-store`, because every
  /// status code that reaches this cache is understood.
  var forbidsStoring: Bool { noStore && !mustUnderstand || isPrivate }

  /// Returns whether a shared cache may store the response.
  ///
  /// - Parameter isAuthorized: whether the request had `Authorization`. Then only `public`,
  ///   `must-revalidate` and `s-maxage` permit storing (section 3.5).
  func allowsStoring(isAuthorized: Bool) -> Bool {
    !forbidsStoring && (!isAuthorized || isPublic || mustRevalidate || sharedMaxAge != nil)
  }

  /// Whether a stale response may be served. Directives can forbid it, and `s-maxage` implies
  /// `proxy-revalidate` (sections 4.2.4 and 5.2.2.10). A time of RFC 5861 beside `s-maxage` allows
  /// it, because both address shared caches.
  var mayBeStale: Bool {
    !mustRevalidate && !proxyRevalidate && !noCache && (sharedMaxAge == nil || saysHowStale)
  }
  /// Whether the origin states a time of RFC 5861 above 0. A time of 0 permits nothing.
  var saysHowStale: Bool { max(staleWhileRevalidate ?? 0, staleIfError ?? 0) > 0 }

  /// The largest number of seconds; larger numbers count as this one (RFC 9111, section 1.2.2).
  static let maximumSeconds = 1 << 31

  /// Creates a value without directives.
  init() {}

  /// Parses one header value, or several joined by commas. Names are case-insensitive, and
  /// arguments may be quoted. An invalid number of seconds, or two different ones, counts as 0,
  /// that is stale (section 4.2.1).
  init(_ value: String) {
    for directive in CacheDirectives(value) {
      switch directive.name {
      case "no-store": noStore = true
      case "no-cache": noCache = true
      case "private": isPrivate = true
      case "public": isPublic = true
      case "must-understand": mustUnderstand = true
      case "must-revalidate": mustRevalidate = true
      case "proxy-revalidate": proxyRevalidate = true
      case "max-age": maxAge = Self.merge(maxAge, with: directive)
      case "s-maxage": sharedMaxAge = Self.merge(sharedMaxAge, with: directive)
      case "stale-while-revalidate":
        staleWhileRevalidate = Self.merge(staleWhileRevalidate, with: directive)
      case "stale-if-error": staleIfError = Self.merge(staleIfError, with: directive)
      case "immutable": immutable = true
      default: break
      }
    }
  }

  /// Parses delta-seconds, at most `maximumSeconds`. Returns `nil` unless all are digits.
  static func seconds(_ text: some StringProtocol) -> Int? {
    CacheDirectives.seconds(text).map { min($0, maximumSeconds) }
  }

  /// Returns the seconds of a directive; 0 if invalid, or unlike an earlier occurrence.
  private static func merge(_ earlier: Int?, with directive: CacheDirectives.Directive) -> Int {
    let value = directive.argument.flatMap { seconds($0) } ?? 0
    return earlier.map { $0 == value ? value : 0 } ?? value
  }
}
