// SourceRules: from the source in a peer's address to the URL that Pictor loads.

import Core

/// Why a source cannot be used.
enum SourceFault: Error {
  /// It is no URL; the text says why.
  case invalid(String)
  /// The operator does not allow it; the text says why.
  case forbidden(String)

  /// Why.
  var reason: String {
    switch self {
    case .invalid(let reason), .forbidden(let reason): reason
    }
  }
}

/// What an operator says of sources: a base URL, replacements, and what is allowed.
struct SourceRules: Sendable {
  /// Ends in no slash, but for a scheme without a host.
  private let base: String
  private let replacements: [(beginning: SourcePrefix, text: String)]
  private let allowed: [(beginning: SourcePrefix, isOfHost: Bool)]

  init(_ options: DoorOptions) {
    var base = options.baseURL[...]
    while base.hasSuffix("/"), !base.hasSuffix("://") { base.removeLast() }
    self.base = String(base)
    replacements = options.replacements.map { (SourcePrefix($0.pattern), $0.text) }
    allowed = options.allowedSources.map { pattern in
      (SourcePrefix(pattern), pattern.utf8.count { $0 == UInt8(ascii: "/") } < 3)
    }
  }

  /// Whether there is a base URL.
  var hasBase: Bool { !base.isEmpty }
  /// Whether files below the local root are the base.
  var isLocal: Bool { base.hasPrefix("local:") }

  /// Whether a text begins with the base URL and stays below it.
  func isBelowBase(_ text: String) -> Bool {
    text.hasPrefix(base + "/") && !Self.hasDots(text)
  }

  /// Whether a URL is below a base that clients can reach.
  func isBelowPublicBase(_ url: String) -> Bool { Self.isWeb(base) && url.hasPrefix(base + "/") }

  /// Returns whether a source is an `http` or `https` URL, also with one slash, as proxies that
  /// merge slashes send it.
  static func isWeb(_ source: some StringProtocol) -> Bool {
    let start = source.prefix(7).lowercased()
    return start.hasPrefix("http:/") || start.hasPrefix("https:/")
  }

  /// Returns the URL of a source. Clients name `http` and `https` URLs, or paths below the base;
  /// other schemes come from the operator alone.
  ///
  /// - Parameter areHosts: whether sources without a scheme begin with a host if there is no base.
  func url(of source: String, areHosts: Bool = false) throws(SourceFault) -> String {
    if let replaced = try replaced(source) { return try parsed(replaced).text }
    if Self.isWeb(source) {
      let scheme = source.prefix { $0 != ":" }
      let rest = source.dropFirst(scheme.count + 1).drop { $0 == "/" }
      return try allowed(scheme.lowercased() + "://" + rest).text
    }
    let head = source.utf8.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "\\") }
    guard head.last != UInt8(ascii: ":"), !source.isEmpty else {
      throw .invalid("the scheme must be http or https")
    }
    guard hasBase else {
      guard areHosts else { throw .forbidden("without base_url a source needs a scheme") }
      return try allowed("http://" + source.drop { $0 == "/" }).text
    }
    return try parsed(try appended(isLocal ? String(source.prefix { $0 != "?" }) : source)).text
  }

  /// Returns the URL of a source, or throws a door's answer to a fault.
  func url(
    of source: String, areHosts: Bool = false, refusing answer: (SourceFault) -> DoorAnswer
  ) throws(DoorAnswer) -> String {
    do { return try url(of: source, areHosts: areHosts) } catch { throw answer(error) }
  }

  /// Returns a source with its beginning replaced; `nil` if none of the replacements fits. What
  /// follows stays below the replacement.
  func replaced(_ source: String) throws(SourceFault) -> String? {
    for (beginning, text) in replacements {
      guard let end = beginning.end(in: source),
        let replaced = beginning.replacing(in: source, with: text)
      else { continue }
      let next = source.utf8.dropFirst(end).first
      let isBare = text.utf8.count { $0 == UInt8(ascii: "/") } == 2 && !text.hasPrefix("local:")
      guard !isBare || Self.isEnd(next), !Self.hasDots(replaced) else {
        throw .forbidden("it leaves what its beginning is replaced by")
      }
      return replaced
    }
    return nil
  }

  /// Returns a path below the base URL.
  func appended(_ path: String) throws(SourceFault) -> String {
    guard !Self.hasDots(path) else { throw .forbidden("a path has no dot segments") }
    return base + "/" + path.drop { $0 == "/" }
  }

  /// Returns the URL of a text, if the operator allows it. A pattern that ends in the host has that
  /// host only, and none has paths with dot segments.
  func allowed(_ text: String) throws(SourceFault) -> SourceURL {
    let url = try parsed(text)
    guard !allowed.isEmpty else { return url }
    let isAllowed = allowed.contains { beginning, isOfHost in
      guard let end = beginning.end(in: url.text) else { return false }
      return !isOfHost || Self.isEnd(url.text.utf8.dropFirst(end).first)
    }
    guard isAllowed, !Self.hasDots(url.path) else {
      throw .forbidden("no beginning in allow_sources is that of the source")
    }
    return url
  }

  private func parsed(_ text: String) throws(SourceFault) -> SourceURL {
    do { return try SourceURL(parsing: text) } catch { throw .invalid(error.message) }
  }

  /// Whether a host can end before a byte.
  private static func isEnd(_ byte: UInt8?) -> Bool {
    byte == nil || byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?")
  }

  /// Whether a path, up to its query, has dot segments, also encoded ones, which origins resolve.
  private static func hasDots(_ path: some StringProtocol) -> Bool {
    PercentEncoding.decodeLeniently(path.utf8.prefix { $0 != UInt8(ascii: "?") })
      .split { "/\\".utf8.contains($0) }.contains { segment in
        let name = segment.prefix { $0 != UInt8(ascii: ";") }
        return name.elementsEqual("..".utf8) || name.elementsEqual(".".utf8)
      }
  }
}
