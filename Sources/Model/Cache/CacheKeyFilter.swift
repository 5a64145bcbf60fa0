// CacheKeyFilter: maps a requested URL to the URL of its cache key (SDWebImage's `cacheKeyFilter`).

/// A pattern for names of query parameters: a name, or a prefix that ends in `*`: `id`, `utm_*`.
public struct ParameterPattern: Hashable, Sendable, CustomStringConvertible {
  private let name: String
  private let isPrefix: Bool

  /// Parses a pattern. Returns `nil` if the text is empty or has a `*` before its end.
  public init?(_ text: String) {
    isPrefix = text.utf8.last == UInt8(ascii: "*")
    name = isPrefix ? String(text.dropLast()) : text
    guard !text.isEmpty, !name.contains("*") else { return nil }
  }

  /// Returns whether a parameter name from a URL matches. Case-sensitive, as at origins.
  ///
  /// The name is percent-decoded first, because to an origin `i%64` is `id`. Otherwise an attacker
  /// could store the response to `?i%64=2` under the key of the URL without `id`.
  public func matches(_ name: some StringProtocol) -> Bool {
    let bytes = PercentEncoding.decodeLeniently(name.utf8)
    return isPrefix ? bytes.starts(with: self.name.utf8) : bytes.elementsEqual(self.name.utf8)
  }

  /// The pattern as written.
  public var description: String { isPrefix ? name + "*" : name }
}

extension HostRule {
  /// Returns whether the key contains a parameter, by its name in the URL.
  fileprivate func counts(_ name: Substring) -> Bool {
    switch parameters {
    case .all: true
    case .keep(let patterns): patterns.contains { $0.matches(name) }
    case .drop(let patterns): !patterns.contains { $0.matches(name) }
    }
  }
}

/// The cache-key members of host rules. The first rule that matches a host applies.
///
/// Other differences in spelling (letter case of the host, default ports, fragments) are removed by
/// `SourceURL`.
public struct CacheKeyFilter: Hashable, Sendable {
  /// The rules in their order.
  public let rules: [HostRule]

  /// Creates a filter. Without rules, it changes nothing.
  public init(rules: [HostRule] = []) { self.rules = rules }

  /// Returns the rule for a source, or `nil` if no rule matches or the source has no origin.
  public func rule(for url: SourceURL) -> HostRule? {
    url.scheme.hasOrigin ? rules.first { $0.covers(url) } : nil
  }

  /// Returns the position of a source's rule, from 1, and its hosts; `nil` as `rule(for:)`.
  public func place(of url: SourceURL) -> (number: Int, hosts: HostPattern)? {
    guard url.scheme.hasOrigin,
      let index = rules.firstIndex(where: { $0.covers(url) })
    else { return nil }
    return (index + 1, rules[index].host)
  }

  /// Returns the URL for a source's cache key, without ignored parameters. The remaining parameters
  /// keep their order and spelling. Idempotent.
  public func keyURL(of url: SourceURL) -> SourceURL {
    guard let rule = rule(for: url), rule.parameters != .all else { return url }
    return url.keepingParameters(where: rule.counts)
  }

  /// Returns the purge tags of a source. A URL and its key URL have the same tags.
  public func tags(of url: SourceURL) -> [String] { rule(for: url)?.tags ?? [] }

  /// All tags, in alphabetical order.
  public var allTags: [String] { Set(rules.flatMap(\.tags)).sorted() }
}
