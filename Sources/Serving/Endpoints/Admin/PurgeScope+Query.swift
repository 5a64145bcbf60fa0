// PurgeScope+Query: parses the query of a purge.

import Core

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
