// CacheControl: the directives of a Cache-Control header (RFC 9111, section 5.2).

import Model

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
