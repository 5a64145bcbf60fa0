// SourceRules: from the source in a peer's address to the URL that Pictor loads, if it may.

import Core

/// What an operator says of sources: a base URL, replacements, and what is allowed.
public struct SourceRules: Sendable {
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

  /// Returns what applies the rules to the text of `/image`'s `url`.
  public static func ofImages(
    _ settings: SourceSettings
  ) -> @Sendable (_ url: String, _ isOfDoor: Bool) throws(ImageError) -> String {
    var options = DoorOptions()
    options.baseURL = settings.baseURL
    options.replacementTexts = settings.replacements
    options.allowedSources = settings.allowed
    let rules = SourceRules(options)
    return { given, isOfDoor throws(ImageError) in
      do throws(DoorFault) { return try rules.absolute(given, isOfDoor: isOfDoor) } catch {
        guard error.kind == .forbidden else { throw .invalidURL(given, reason: error.reason) }
        throw .forbiddenSource(reason: error.reason, detail: given, key: "sources.allow")
      }
    }
  }

  /// Returns the text of an absolute URL. Unlike a peer's, it may have any scheme. A door has
  /// replaced beginnings already.
  private func absolute(_ given: String, isOfDoor: Bool) throws(DoorFault) -> String {
    if !isOfDoor, let replaced = try replaced(given) { return replaced }
    let head = given.prefix { !"/?#".contains($0) }
    guard head.contains(":") else {
      return given.isEmpty || !hasBase ? given : try appended(given)
    }
    // A proxy may have merged the slashes.
    let isMerged = Self.isWeb(given) && !given.dropFirst(head.count).hasPrefix("//")
    let whole = isMerged ? head + "/" + given.dropFirst(head.count) : given
    return allowed.isEmpty ? whole : try allowed(whole).text
  }

  var hasBase: Bool { !base.isEmpty }
  /// Whether files below the local root are the base.
  var isLocal: Bool { base.hasPrefix("local:") }

  /// Whether a text begins with the base URL and stays below it.
  func isBelowBase(_ text: String) -> Bool { text.hasPrefix(base + "/") && !Self.hasDots(text) }

  /// Whether a URL is below a base that clients can reach.
  func isBelowPublicBase(_ url: String) -> Bool { Self.isWeb(base) && url.hasPrefix(base + "/") }

  /// Whether a source is a web URL, also with one slash, as proxies that merge slashes send it.
  static func isWeb(_ source: some StringProtocol) -> Bool {
    let start = source.prefix(7).lowercased()
    return start.hasPrefix("http:/") || start.hasPrefix("https:/")
  }

  /// Returns the URL of a source. Clients name `http` and `https` URLs, or paths below the base;
  /// other schemes come from the operator alone.
  ///
  /// - Parameter areHosts: whether sources without a scheme begin with a host if there is no base.
  func url(of source: String, areHosts: Bool = false) throws(DoorFault) -> String {
    if let replaced = try replaced(source) { return try parsed(replaced).text }
    if Self.isWeb(source) {
      let scheme = source.prefix { $0 != ":" }
      let rest = source.dropFirst(scheme.count + 1).drop { $0 == "/" }
      return try allowed(scheme.lowercased() + "://" + rest).text
    }
    let head = source.utf8.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "\\") }
    guard head.last != UInt8(ascii: ":"), !source.isEmpty else {
      throw .source("the scheme must be http or https")
    }
    guard hasBase else {
      guard areHosts else { throw .forbidden("without base_url a source needs a scheme") }
      return try allowed("http://" + source.drop { $0 == "/" }).text
    }
    return try parsed(try appended(isLocal ? String(source.prefix { $0 != "?" }) : source)).text
  }

  /// Returns a source with its beginning replaced; it stays below that. `nil`: no replacement fits.
  func replaced(_ source: String) throws(DoorFault) -> String? {
    for (beginning, text) in replacements {
      guard let match = beginning.match(source) else { continue }
      let replaced = SourcePrefix.replacement(text, for: match)
      let isBare = text.utf8.count { $0 == UInt8(ascii: "/") } == 2 && !text.hasPrefix("local:")
      guard !isBare || Self.isEnd(match.rest.first), !Self.hasDots(replaced) else {
        throw .forbidden("it leaves what its beginning is replaced by")
      }
      return replaced
    }
    return nil
  }

  /// Returns a path below the base URL.
  func appended(_ path: String) throws(DoorFault) -> String {
    guard !Self.hasDots(path) else { throw .forbidden("a path has no dot segments") }
    return base + "/" + path.drop { $0 == "/" }
  }

  /// Returns the URL of a text, if the operator allows it. A pattern that ends in the host has that
  /// host only, and none has paths with dot segments.
  func allowed(_ text: String) throws(DoorFault) -> SourceURL {
    let url = try parsed(text)
    guard !allowed.isEmpty else { return url }
    let isAllowed = allowed.contains { beginning, isOfHost in
      guard let match = beginning.match(url.text) else { return false }
      return !isOfHost || Self.isEnd(match.rest.first)
    }
    guard isAllowed, !Self.hasDots(url.path) else {
      throw .forbidden("no beginning in allow_sources is that of the source")
    }
    return url
  }

  private func parsed(_ text: String) throws(DoorFault) -> SourceURL {
    do { return try SourceURL(parsing: text) } catch { throw .source(error.message) }
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

/// The beginning of a source, in which `*` stands for any bytes but slashes.
struct SourcePrefix: Sendable {
  /// What the wildcards stand for, and what follows the beginning.
  typealias Match = (parts: [ArraySlice<UInt8>], rest: ArraySlice<UInt8>)

  /// The texts between the wildcards.
  private let pieces: [[UInt8]]
  /// The most bytes that a wildcard stands for, which bounds the time of a match.
  private static let longestPart = 255
  /// What a wildcard does not stand for: a slash, and what ends a host.
  private static let ends = Array("/?#@:\\".utf8)

  init(_ pattern: String) {
    pieces = pattern.utf8.split(separator: UInt8(ascii: "*"), omittingEmptySubsequences: false)
      .map(Array.init)
  }

  /// Matches as many bytes as possible with each wildcard; `nil`: the source begins otherwise.
  func match(_ source: String) -> Match? {
    var failed: Set<Int> = []
    return match(0, Array(source.utf8)[...], &failed)
  }

  /// Matches from a piece on. Each wildcard and place is tried once.
  private func match(
    _ index: Int, _ text: ArraySlice<UInt8>, _ failed: inout Set<Int>
  ) -> Match? {
    guard text.starts(with: pieces[index]) else { return nil }
    let text = text.dropFirst(pieces[index].count)
    guard index + 1 < pieces.count else { return ([], text) }
    guard failed.insert(index * (text.endIndex + 1) + text.startIndex).inserted else { return nil }
    let part = text.prefix(Self.longestPart).prefix { !Self.ends.contains($0) }
    for end in (text.startIndex...part.endIndex).reversed() {
      if let (parts, rest) = match(index + 1, text[end...], &failed) {
        return ([text[..<end]] + parts, rest)
      }
    }
    return nil
  }

  /// Returns a text, `${1}` being what the first wildcard stands for, and the rest of the source.
  static func replacement(_ text: String, for match: Match) -> String {
    var result: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "$"), rest.first == UInt8(ascii: "{"),
        let close = rest.firstIndex(of: UInt8(ascii: "}")),
        let number = Int(String(decoding: rest[..<close].dropFirst(), as: UTF8.self)), number >= 1
      {
        if number <= match.parts.count { result += match.parts[number - 1] }
        rest = rest[(close + 1)...]
      } else {
        result.append(byte)
      }
    }
    return String(decoding: result + match.rest, as: UTF8.self)
  }
}
