// RequestTarget: the parsed form of a raw request target, and the route of its path.

import Model

/// An endpoint, by its decoded path. To add an endpoint, add a case.
enum Route: String, Sendable {
  /// Serves an image.
  case image = "/image"
  /// Describes a source.
  case info = "/info"
  /// Reports health and figures.
  case stats = "/stats"
  /// Looks up, stores or purges cache entries.
  case cache = "/admin/cache"
  /// Clears cache tiers.
  case clearCache = "/admin/cache/clear"
  /// Removes expired and excess entries.
  case cleanCache = "/admin/cache/clean"
  /// Lists or removes failed URLs.
  case failedURLs = "/admin/failed"
  /// Cancels all work.
  case cancel = "/admin/cancel"
  /// Lists the downloads.
  case downloads = "/admin/downloads"
  /// Pauses downloads.
  case pause = "/admin/pause"
  /// Resumes downloads.
  case resume = "/admin/resume"
  /// Lists and starts prefetches.
  case prefetches = "/admin/prefetch"
  /// One prefetch; its name follows.
  case prefetch = "/admin/prefetch/"

  /// Whether the endpoint requires an operator's token.
  var isForOperators: Bool {
    switch self {
    case .image, .info, .stats: false
    default: true
    }
  }

  /// Whether the response is made from a source and cached.
  var isForImages: Bool { self == .image || self == .info }

  /// The allowed methods.
  var methods: [Method] {
    switch self {
    case .image, .info, .stats: [.get, .head]
    case .downloads: [.get, .head]
    case .cache: [.get, .head, .put, .delete]
    case .failedURLs, .prefetch: [.get, .head, .delete]
    case .prefetches: [.get, .head, .post]
    case .cancel, .pause, .resume, .clearCache, .cleanCache: [.post]
    }
  }

  /// Returns the route of a path, and the name that follows a prefetch's path.
  static func find(_ path: String) -> (route: Route, name: String?)? {
    let parent = Route.prefetch.rawValue
    if path.hasPrefix(parent) {
      let name = path.dropFirst(parent.count)
      return name.isEmpty || name.contains("/") ? nil : (.prefetch, String(name))
    }
    return Route(rawValue: path).map { ($0, nil) }
  }

  /// The `Allow` field (RFC 9110, section 10.2.1).
  var allowed: String { Self.names(of: methods) }

  /// The `Allow` field of an unknown path.
  static let allowedAnywhere = names(of: [.get, .head])

  private static func names(of methods: [Method]) -> String {
    (methods + [.options]).map(\.name).joined(separator: ", ")
  }
}

/// The parsed form of a raw request target (RFC 9112, section 3.2).
///
/// Belongs to the thread of one event loop.
final class RequestTarget {
  /// The raw bytes, for comparison with colliding targets and for the log.
  let raw: [UInt8]
  /// `RequestMemo.hash` of `raw`.
  let hash: UInt64
  /// The decoded path, for messages. Use `route` for decisions.
  let path: String
  /// The endpoint; `nil` for an unknown path.
  let route: Route?
  /// The name of a prefetch; `nil` for other routes.
  let name: String?
  /// The request of `/image` or `/info`, or its error; `nil` on other routes.
  let request: Result<ImageRequest, ImageError>?
  /// The request fields forwarded to the source's origin; `nil` for none.
  let forwarding: Forwarding?
  /// The cache key, if the target alone determines it and memory may have the response. A hit
  /// copies the key instead of the whole request.
  let key: CacheKey?
  /// Whether the response depends on `Accept`; `key` is then for clients that accept no negotiable
  /// format.
  let isNegotiated: Bool
  /// The `Vary` field of the response (RFC 9110, section 12.5.5); `nil` if the response does not
  /// vary.
  let vary: String?
  /// The keys of the classes of clients seen so far, indexed by class.
  private var negotiatedKeys: [CacheKey?] = []

  /// Parses a target. Errors are stored in `request`.
  init(raw: [UInt8], hash: UInt64, rules: RequestRules) {
    (self.raw, self.hash) = (raw, hash)
    let origin = Self.originForm(raw[...])
    let end = origin.firstIndex(of: UInt8(ascii: "?")) ?? origin.endIndex
    let decoded = PercentEncoding.decode(origin[..<end])
    path = decoded ?? displayable(origin[..<end])
    let found = decoded.flatMap(Route.find)
    (route, name) = (found?.route, found?.name)
    guard let route, route.isForImages else {
      (request, forwarding, key, isNegotiated, vary) = (nil, nil, nil, false, nil)
      return
    }
    do throws(ImageError) {
      let parsed = try ImageParameter.parse(
        origin[end...].dropFirst(), rules: rules, route: route)
      forwarding = Forwarding(
        names: rules.keyFilter.rule(for: parsed.source)?.forwardedHeaders ?? [])
      let mayHit = parsed.options.cache == .normal || parsed.options.cache == .only
      isNegotiated = rules.isNegotiated(parsed.transform)
      vary = Self.vary(forwarding, isNegotiated: isNegotiated)
      // The response to a redirected request is not cached.
      let isRedirected = isNegotiated && rules.redirectsAuto
      (request, key) = (
        .success(parsed), mayHit && forwarding == nil && !isRedirected ? parsed.key : nil
      )
    } catch {
      (request, forwarding, key, isNegotiated, vary) = (.failure(error), nil, nil, false, nil)
    }
  }

  /// Returns the key for clients that accept `formats`, if memory may have the response. Allocates
  /// only for the first request of a class.
  func key(accepting formats: AcceptedFormats, _ rules: RequestRules) -> CacheKey? {
    let formats = formats.intersection(rules.onOffer)
    guard key != nil, !formats.isEmpty else { return key }
    let place = Int(formats.rawValue)
    if place < negotiatedKeys.count, let known = negotiatedKeys[place] { return known }
    guard case .success(let request) = request else { return nil }
    if negotiatedKeys.isEmpty {
      negotiatedKeys = Array(repeating: nil, count: AcceptedFormats.classCount)
    }
    let made = rules.request(request, accepting: formats).key
    negotiatedKeys[place] = made
    return made
  }

  private static func vary(_ forwarding: Forwarding?, isNegotiated: Bool) -> String? {
    var names = forwarding?.names ?? []
    if isNegotiated, !names.contains(where: { $0.lowercased() == "accept" }) {
      names.append("Accept")
    }
    return names.isEmpty ? nil : names.joined(separator: ", ")
  }

  /// Returns the redirect location that names `format`. It is relative to the last path segment
  /// (RFC 3986, section 5.2), because a proxy may use another path.
  func location(naming format: ImageFormat) -> String {
    let origin = Self.originForm(raw[...])
    let path = origin.prefix { $0 != UInt8(ascii: "?") }
    let name = path[(path.lastIndex(of: UInt8(ascii: "/")) ?? path.startIndex)...].dropFirst()
    // Drops `format=auto`, the default.
    let kept = query.split(separator: UInt8(ascii: "&")).filter {
      PercentEncoding.decode($0.prefix { $0 != UInt8(ascii: "=") }) != "format"
    }
    let parts = kept.map(Self.written) + ["format=" + format.rawValue]
    return Self.written(name) + "?" + parts.joined(separator: "&")
  }

  /// Percent-encodes the bytes that are not URI characters (RFC 3986, section 2).
  private static func written(_ bytes: ArraySlice<UInt8>) -> String {
    var text = ""
    for byte in bytes {
      if (0x21...0x7e).contains(byte), !"\"#<>\\^`{|}".utf8.contains(byte) {
        text.unicodeScalars.append(Unicode.Scalar(byte))
      } else {
        text += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
      }
    }
    return text
  }

  /// The query, without the `?`.
  var query: ArraySlice<UInt8> {
    let origin = Self.originForm(raw[...])
    return origin.drop { $0 != UInt8(ascii: "?") }.dropFirst()
  }

  /// Removes the scheme and authority of the absolute form, which every server must accept.
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
