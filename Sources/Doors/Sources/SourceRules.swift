// SourceRules: from the source in a peer's address to the URL that Pictor loads.

import Core

/// Why a source cannot be used.
enum SourceFault: Error {
  /// It is no URL; the text says why.
  case invalid(String)
  /// The operator does not allow it; the text says why.
  case forbidden(String)
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

  /// Whether sources without a scheme have a base URL that clients can reach.
  var hasPublicBase: Bool { Self.isWeb(base) }

  /// Returns whether a source is an `http` or `https` URL, also with one slash, as proxies that
  /// merge slashes send it.
  static func isWeb(_ source: some StringProtocol) -> Bool {
    let start = source.prefix(7).lowercased()
    return start.hasPrefix("http:/") || start.hasPrefix("https:/")
  }

  /// Returns the URL of a source. Clients name `http` and `https` URLs, or paths below the base URL;
  /// other schemes come from the operator alone.
  ///
  /// - Parameter areHosts: whether sources without a scheme begin with a host if there is no base.
  func url(of source: String, areHosts: Bool = false) throws(SourceFault) -> String {
    for (beginning, text) in replacements {
      if let replaced = beginning.replacing(in: source, with: text) {
        return try parsed(replaced).text
      }
    }
    if Self.isWeb(source) {
      let scheme = source.prefix { $0 != ":" }
      let rest = source.dropFirst(scheme.count + 1).drop { $0 == "/" }
      let url = try parsed(scheme.lowercased() + "://" + rest)
      guard isAllowed(url) else { throw .forbidden("no pattern of allowed_sources has it") }
      return url.text
    }
    let head = source.utf8.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "\\") }
    guard head.last != UInt8(ascii: ":"), !source.isEmpty else {
      throw .invalid("the scheme must be http or https")
    }
    let path = source.drop { $0 == "/" }
    guard !base.isEmpty else {
      guard areHosts else { throw .forbidden("without base_url a source needs a scheme") }
      let url = try parsed("http://" + path)
      guard isAllowed(url) else { throw .forbidden("no pattern of allowed_sources has it") }
      return url.text
    }
    guard !Self.hasDots(path.prefix { $0 != "?" }) else {
      throw .forbidden("a path has no dot segments")
    }
    let isLocal = base.hasPrefix("local:")
    return try parsed(base + "/" + (isLocal ? path.prefix { $0 != "?" } : path)).text
  }

  /// Returns the URL of a source, or throws a door's answer to a fault.
  func url(
    of source: String, areHosts: Bool = false, refusing answer: (SourceFault) -> DoorAnswer
  ) throws(DoorAnswer) -> String {
    do { return try url(of: source, areHosts: areHosts) } catch { throw answer(error) }
  }

  private func parsed(_ text: String) throws(SourceFault) -> SourceURL {
    do { return try SourceURL(parsing: text) } catch { throw .invalid(error.message) }
  }

  /// Whether a pattern has a URL. A pattern that ends in the host has that host only, and none has
  /// paths with encoded dot segments.
  private func isAllowed(_ url: SourceURL) -> Bool {
    guard !allowed.isEmpty else { return true }
    return !Self.hasDots(url.path)
      && allowed.contains { beginning, isOfHost in
        guard let end = beginning.end(in: url.text) else { return false }
        let next = url.text.utf8.dropFirst(end).first
        return !isOfHost || next == nil || next == UInt8(ascii: "/") || next == UInt8(ascii: "?")
      }
  }

  private static func hasDots(_ path: some StringProtocol) -> Bool {
    path.percentDecoded.utf8.split { "/\\".utf8.contains($0) }.contains { segment in
      let name = segment.prefix { $0 != UInt8(ascii: ";") }
      return name.elementsEqual("..".utf8) || name.elementsEqual(".".utf8)
    }
  }
}
