// RequestTarget and Route: what a raw request target means, which never changes, so it is worked out once.

import Model

/// Where a path leads, by the path, decoded. A new endpoint is a new row.
enum Route: String, Sendable {
  /// A picture.
  case image = "/image"
  /// Health and figures.
  case stats = "/stats"

  /// The `Allow` header; every route so far is for reading.
  var allowed: String { "GET, HEAD" }
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
  /// What `/image` was asked for, or why it cannot be answered; `nil` on other routes.
  let request: Result<ImageRequest, ImageError>?
  /// The request's key, kept beside it so that a hit copies this and not the whole request.
  let key: CacheKey?

  /// Parses a target; whatever is wrong with it is remembered, not thrown.
  init(raw: [UInt8], hash: UInt64) {
    (self.raw, self.hash) = (raw, hash)
    let origin = Self.originForm(raw[...])
    let end = origin.firstIndex(of: UInt8(ascii: "?")) ?? origin.endIndex
    let decoded = PercentEncoding.decode(origin[..<end])
    path = decoded ?? displayable(origin[..<end])
    route = decoded.flatMap { Route(rawValue: $0) }
    guard route == .image else {
      (request, key) = (nil, nil)
      return
    }
    do throws(ImageError) {
      let parsed = try ImageParameter.parse(origin[end...].dropFirst())
      (request, key) = (.success(parsed), parsed.key)
    } catch {
      (request, key) = (.failure(error), nil)
    }
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
