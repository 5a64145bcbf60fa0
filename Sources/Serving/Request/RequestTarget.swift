// RequestTarget and Route: what a raw request target means, which never changes, so it is worked out once.

import Model

/// Where a path leads, by the path, decoded. A new endpoint is a new row.
enum Route: String, Sendable {
  /// An image.
  case image = "/image"
  /// What a source is.
  case info = "/info"
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
    case .image, .info, .stats: false
    default: true
    }
  }

  /// Whether its answers are made of a source and kept.
  var isForImages: Bool { self == .image || self == .info }

  /// What can be done with it.
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
  var allowed: String { Self.names(of: methods) }

  /// The same for a path that leads nowhere.
  static let allowedAnywhere = names(of: [.get, .head])

  private static func names(of methods: [Method]) -> String {
    (methods + [.options]).map(\.name).joined(separator: ", ")
  }
}

/// The meaning of one raw request target (RFC 9112, section 3.2), bytes as they came.
///
/// Belongs to one worker's thread.
final class RequestTarget {
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
  /// What `/image` or `/info` was asked for, or why it cannot be answered; `nil` on other routes.
  let request: Result<ImageRequest, ImageError>?
  /// What of a client's header the source's origin is sent; `nil`: nothing.
  let forwarding: Forwarding?
  /// The request's key, where memory may have the answer and the target alone tells it; kept beside it so that a hit
  /// copies this and not the whole request.
  let key: CacheKey?
  /// Whether the answer depends on what its client takes; then `key` is that of one who names nothing.
  let isNegotiated: Bool
  /// The `Vary` field of what is answered (RFC 9110, section 12.5.5), where there is any choice.
  let vary: String?
  /// The keys of clients who name formats, by their class, as far as they were asked for.
  private var negotiatedKeys: [CacheKey?] = []

  /// Parses a target; whatever is wrong with it is remembered, not thrown.
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
      // What is redirected has an answer that is not kept.
      let isRedirected = isNegotiated && rules.redirectsAuto
      (request, key) = (
        .success(parsed), mayHit && forwarding == nil && !isRedirected ? parsed.key : nil
      )
    } catch {
      (request, forwarding, key, isNegotiated, vary) = (.failure(error), nil, nil, false, nil)
    }
  }

  /// The key of clients who take `formats`, where memory may have the answer. From the second request of a class on
  /// this allocates nothing.
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

  /// Where a client is sent who is to ask for `format` by name: the last segment of the path and the query, relative to
  /// the path that was asked for (RFC 3986, section 5.2), which a proxy may know by another name.
  func location(naming format: ImageFormat) -> String {
    let origin = Self.originForm(raw[...])
    let path = origin.prefix { $0 != UInt8(ascii: "?") }
    let name = path[(path.lastIndex(of: UInt8(ascii: "/")) ?? path.startIndex)...].dropFirst()
    // `format=auto`, which says what its absence does.
    let kept = query.split(separator: UInt8(ascii: "&")).filter {
      PercentEncoding.decode($0.prefix { $0 != UInt8(ascii: "=") }) != "format"
    }
    let parts = kept.map(Self.written) + ["format=" + format.rawValue]
    return Self.written(name) + "?" + parts.joined(separator: "&")
  }

  /// What is no character of a URI (RFC 3986, section 2) percent-encoded, all else as it came.
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
