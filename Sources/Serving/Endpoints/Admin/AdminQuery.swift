// AdminQuery: parses the queries of admin endpoints, among them those of purges.

import Core

/// The parameters of an admin endpoint, each at most once unless the endpoint allows more.
struct AdminQuery {
  private var values: [(name: String, value: String)] = []

  /// Parses a raw query, without its `?`.
  ///
  /// - Parameter repeatable: the names that may be given more than once.
  /// - Throws: `unknownParameter`, or `invalidParameter` for a value that cannot be decoded and for
  ///   a repeated parameter.
  init(
    _ query: ArraySlice<UInt8>, allowed: [String] = [], repeatable: [String] = []
  ) throws(ImageError) {
    for piece in query.split(separator: UInt8(ascii: "&")) {
      let parts = piece.split(
        separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = PercentEncoding.decode(parts[0]), (allowed + repeatable).contains(name)
      else {
        throw .unknownParameter(displayable(parts[0]))
      }
      let raw = parts.count > 1 ? parts[1] : []
      guard let value = PercentEncoding.decode(raw) else {
        throw .invalidParameter(
          name: name, value: displayable(raw),
          allowed: "it is not percent-encoded UTF-8 without NUL")
      }
      guard repeatable.contains(name) || self[name] == nil else {
        throw .invalidParameter(
          name: name, value: displayable(value), allowed: "it may be given only once")
      }
      values.append((name, value))
    }
  }

  /// The value of a parameter, the first of a repeatable one.
  subscript(_ name: String) -> String? { values.first { $0.name == name }?.value }

  func all(_ name: String) -> [String] { values.filter { $0.name == name }.map(\.value) }

  /// Returns a number from 0 to 1, or `nil` if the parameter is missing.
  ///
  /// - Throws: `invalidParameter` for any other value.
  func fraction(_ name: String) throws(ImageError) -> Double? {
    guard let text = self[name] else { return nil }
    // Without signs, exponents and hexadecimal digits.
    let isPlain = text.utf8.allSatisfy { (48...57).contains($0) || $0 == UInt8(ascii: ".") }
    guard isPlain, let value = Double(text), (0...1).contains(value) else {
      throw .invalidParameter(
        name: name, value: displayable(text), allowed: "a number from 0 to 1")
    }
    return value
  }
}

extension PurgeScope {
  private static let names = ["url", "prefix", "host", "tag"]

  /// Parses a purge's query: exactly one of `url`, `prefix`, `host`, `tag`, or none with `tier`.
  ///
  /// - Throws: as `init`, and `invalidParameter` for a tier that does not exist.
  static func parse(
    _ query: ArraySlice<UInt8>, filter: CacheKeyFilter
  ) throws(ImageError) -> (scope: PurgeScope, tier: CacheTier) {
    let parsed = try AdminQuery(query, allowed: ["tier"], repeatable: names)
    guard let text = parsed["tier"] else { return (try Self(parsed, filter: filter), .all) }
    guard let tier = CacheTier(rawValue: text) else {
      throw .invalidParameter(
        name: "tier", value: displayable(text), allowed: "memory, disk, shared or all")
    }
    let isWhole = names.allSatisfy { parsed[$0] == nil }
    return (isWhole ? .everything : try Self(parsed, filter: filter), tier)
  }

  /// Parses the query of a purge: exactly one of `url`, `prefix`, `host` and `tag`.
  ///
  /// - Throws: `invalidParameter`, `missingParameter` or `invalidURL`. A scope
  ///   that cannot match anything is refused, so that a typing error is not reported as a purge.
  private init(_ query: AdminQuery, filter: CacheKeyFilter) throws(ImageError) {
    let given = Self.names.flatMap { name in query.all(name).map { (name, $0) } }
    guard let (name, text) = given.first else {
      throw .missingParameter("url, prefix, host or tag")
    }
    func refuse(_ name: String, text: String, allowed: String) -> ImageError {
      .invalidParameter(name: name, value: displayable(text), allowed: allowed)
    }
    if given.count > 1 {
      throw refuse(
        given[1].0, text: given[1].1, allowed: "one of url, prefix, host and tag, and only one")
    }
    switch name {
    case "url": self = .url(filter.keyURL(of: try SourceURL(parsing: text)))
    case "prefix":
      guard Self.isPrefix(text), let prefix = try? SourceURL(parsing: text) else {
        throw refuse(name, text: text, allowed: Self.prefixAllowed)
      }
      self = .prefix(prefix)
    case "host":
      // A single colon separates a port; an IPv6 address has at least two.
      guard let host = HostPattern(text), text.utf8.count(where: { $0 == UInt8(ascii: ":") }) != 1
      else {
        throw refuse(
          name, text: text,
          allowed:
            "a host without scheme, port and path, such as example.com, *.example.com, or * for all"
        )
      }
      self = .host(host)
    default:
      let tags = filter.allTags
      guard tags.contains(text) else {
        throw refuse(
          name, text: text,
          allowed: tags.isEmpty
            ? "no host rule has a tag" : "a tag of a host rule: " + tags.joined(separator: ", "))
      }
      self = .tag(text)
    }
  }
}

extension PurgeScope {
  private static let prefixAllowed = """
    the beginning of a URL with its whole host and the slash behind it, such as https://example.com/a, without # and \
    without * at its end; host= takes away all of a host, or of the hosts below one
    """

  /// Whether a text can be the beginning of a cached URL. A host without the slash after it is
  /// refused: it is unclear whether it is complete. Cached URLs contain no `#`.
  private static func isPrefix(_ text: String) -> Bool {
    guard let mark = text.firstRange(of: "://") else { return false }
    let rest = text[mark.upperBound...]
    guard let slash = rest.firstIndex(where: { "/?#".contains($0) }), rest[slash] == "/" else {
      return false
    }
    return !rest[..<slash].contains("*") && !text.contains("#") && !text.hasSuffix("*")
  }
}
