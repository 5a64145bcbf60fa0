// RequestTarget and Route: what a raw request target means, which never changes, so it is worked out once.

import Model

/// Where a path leads, by the path, decoded. A new endpoint is a new row.
enum Route: String, Sendable {
  /// A picture.
  case image = "/image"
  /// Health and figures.
  case stats = "/stats"
  /// What is kept.
  case cache = "/admin/cache"
  /// The emptying of tiers.
  case clearCache = "/admin/cache/clear"
  /// The removal of what is too old or too much.
  case cleanCache = "/admin/cache/clean"
  /// The failed URLs.
  case failedURLs = "/admin/failed"
  /// The end of all work.
  case cancel = "/admin/cancel"
  /// The downloads.
  case downloads = "/admin/downloads"
  /// No further downloads for now.
  case pause = "/admin/pause"
  /// Downloads again.
  case resume = "/admin/resume"
  /// Lists to prefetch.
  case prefetches = "/admin/prefetch"
  /// One of them; its name follows.
  case prefetch = "/admin/prefetch/"

  /// Whether it is for operators alone.
  var isForOperators: Bool {
    switch self {
    case .image, .stats: false
    default: true
    }
  }

  /// What can be done with it.
  var methods: [Method] {
    switch self {
    case .image, .stats: [.get, .head]
    case .downloads: [.get, .head]
    case .cache: [.get, .head, .put, .delete]
    case .failedURLs, .prefetch: [.get, .head, .delete]
    case .prefetches: [.get, .head, .post]
    case .cancel, .pause, .resume, .clearCache, .cleanCache: [.post]
    }
  }

  /// The route of a path, and what follows it where it is one for many.
  static func find(_ path: String) -> (route: Route, name: String?)? {
    let parent = Route.prefetch.rawValue
    if path.hasPrefix(parent) {
      let name = path.dropFirst(parent.count)
      return name.isEmpty || name.contains("/") ? nil : (.prefetch, String(name))
    }
    return Route(rawValue: path).map { ($0, nil) }
  }

  /// The `Allow` field (RFC 9110, section 10.2.1).
  var allowed: String { methods.map(\.name).joined(separator: ", ") }
}

/// The meaning of one raw request target (RFC 9112, section 3.2), bytes as they came.
final class RequestTarget: Sendable {
  /// The bytes, for telling equal targets from colliding ones and for the log.
  let raw: [UInt8]
  /// `RequestMemo.hash` of them.
  let hash: UInt64
  /// The path, for people; the route knows better.
  let path: String
  /// Where it leads, `nil`: nowhere.
  let route: Route?
  /// What the path names below its route, where that is one for many.
  let name: String?
  /// What `/image` was asked for, or why it cannot be answered; `nil` on other routes.
  let request: Result<ImageRequest, ImageError>?
  /// What of a client's header the source's origin is sent; `nil`: nothing.
  let forwarding: Forwarding?
  /// The request's key, where memory may have the answer and the target alone tells it; kept beside it so that a hit copies this and not the whole
  /// request.
  let key: CacheKey?

  /// Parses a target; whatever is wrong with it is remembered, not thrown.
  init(raw: [UInt8], hash: UInt64, rules: RequestRules) {
    (self.raw, self.hash) = (raw, hash)
    let origin = Self.originForm(raw[...])
    let end = origin.firstIndex(of: UInt8(ascii: "?")) ?? origin.endIndex
    let decoded = PercentEncoding.decode(origin[..<end])
    path = decoded ?? displayable(origin[..<end])
    let found = decoded.flatMap(Route.find)
    (route, name) = (found?.route, found?.name)
    guard route == .image else {
      (request, forwarding, key) = (nil, nil, nil)
      return
    }
    do throws(ImageError) {
      let parsed = try ImageParameter.parse(origin[end...].dropFirst(), rules: rules)
      forwarding = Forwarding(
        names: rules.keyFilter.rule(for: parsed.source)?.forwardedHeaders ?? [])
      let mayHit = parsed.options.cache == .normal || parsed.options.cache == .only
      (request, key) = (.success(parsed), mayHit && forwarding == nil ? parsed.key : nil)
    } catch {
      (request, forwarding, key) = (.failure(error), nil, nil)
    }
  }

  /// What stands behind the `?`.
  var query: ArraySlice<UInt8> {
    let origin = Self.originForm(raw[...])
    return origin.drop { $0 != UInt8(ascii: "?") }.dropFirst()
  }

  /// The target without the scheme and authority of the absolute form, which every server must understand.
  private static func originForm(_ target: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    for scheme in ["http://", "https://"]
    where target.prefix(scheme.utf8.count).elementsEqual(scheme.utf8) {
      let rest = target.dropFirst(scheme.utf8.count)
      let slash = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
      return rest[slash...]
    }
    return target
  }
}
