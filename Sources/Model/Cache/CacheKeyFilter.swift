// CacheKeyFilter: from the URL that is fetched to the URL that its key is made of (SDWebImage's cacheKeyFilter).

/// Parameters of a query by name, or with a `*` at the end by how their names begin: `id`, `utm_*`.
public struct ParameterPattern: Hashable, Sendable, CustomStringConvertible {
  private let name: String
  private let isPrefix: Bool

  /// Parses a pattern; `nil` where it is empty, or a `*` stands elsewhere than at its end.
  public init?(_ text: String) {
    isPrefix = text.utf8.last == UInt8(ascii: "*")
    name = isPrefix ? String(text.dropLast()) : text
    guard !text.isEmpty, !name.contains("*") else { return nil }
  }

  /// Whether a parameter is meant, by its name as it stands in a URL. Letter case matters, as it does to origins.
  ///
  /// The name is decoded first: to an origin `i%64` is `id`, and if it were not to this, a stranger could have what
  /// `?i%64=2` brings kept under the key of a URL without an `id`.
  public func matches(_ name: some StringProtocol) -> Bool {
    let bytes = Self.decoded(name.utf8)
    return isPrefix ? bytes.starts(with: self.name.utf8) : bytes.elementsEqual(self.name.utf8)
  }

  /// One level of percent-encoding (RFC 3986, section 2.1); a `%` without two digits stays, as with most origins.
  private static func decoded(_ name: some Collection<UInt8>) -> [UInt8] {
    func digit(_ byte: UInt8?) -> UInt8? {
      switch byte {
      case .some(let byte) where (0x30...0x39).contains(byte): byte - 0x30
      case .some(let byte) where (0x61...0x66).contains(byte | 0x20): (byte | 0x20) - 0x61 + 10
      default: nil
      }
    }
    var bytes: [UInt8] = []
    var rest = Array(name)[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "%"), let high = digit(rest.first),
        let low = digit(rest.dropFirst().first)
      {
        bytes.append(high << 4 | low)
        rest = rest.dropFirst(2)
      } else {
        bytes.append(byte)
      }
    }
    return bytes
  }

  /// The pattern as it was written.
  public var description: String { isPrefix ? name + "*" : name }
}

/// What the keys of one host's sources are made of.
public struct KeyRule: Hashable, Sendable {
  /// Which parameters of the query count.
  public enum Parameters: Hashable, Sendable {
    /// Every one.
    case all
    /// Only these.
    case keep([ParameterPattern])
    /// All but these.
    case drop([ParameterPattern])
  }

  /// The hosts it is for.
  public let host: HostPattern
  /// Which parameters of the query count.
  public let parameters: Parameters
  /// Names under which all sources of these hosts can be purged.
  public let tags: [String]
  /// Names of the header fields of a client that go on to the origin, whose answer then may depend on them.
  public let forwardedHeaders: [String]

  /// A rule.
  public init(
    host: HostPattern, parameters: Parameters = .all, tags: [String] = [],
    forwardedHeaders: [String] = []
  ) {
    (self.host, self.parameters) = (host, parameters)
    (self.tags, self.forwardedHeaders) = (tags, forwardedHeaders)
  }

  /// Whether a parameter counts, by its name as it stands in a URL.
  fileprivate func counts(_ name: Substring) -> Bool {
    switch parameters {
    case .all: true
    case .keep(let patterns): patterns.contains { $0.matches(name) }
    case .drop(let patterns): !patterns.contains { $0.matches(name) }
    }
  }
}

/// Rules by which sources are named; of several for one host, the first counts.
///
/// Whatever else differs between two spellings of a URL (letter case of the host, default ports, fragments) is gone from
/// a `SourceURL` already.
public struct CacheKeyFilter: Hashable, Sendable {
  private let rules: [KeyRule]

  /// A filter; without rules it changes nothing.
  public init(rules: [KeyRule] = []) { self.rules = rules }

  /// The rule for a source; `nil` where there is none, and for a local file.
  public func rule(for url: SourceURL) -> KeyRule? {
    url.scheme == .local ? nil : rules.first { $0.host.matches(url.host) }
  }

  /// The URL that a source's key is made of: the same without the parameters that do not count. What stays keeps its
  /// order and its spelling. The result's own is itself.
  public func keyURL(of url: SourceURL) -> SourceURL {
    guard let rule = rule(for: url), rule.parameters != .all else { return url }
    return url.keepingParameters(where: rule.counts)
  }

  /// The names under which a source can be purged. A key's URL has the same ones as the URL it was made of.
  public func tags(of url: SourceURL) -> [String] { rule(for: url)?.tags ?? [] }

  /// All names under which sources can be purged, in alphabetical order.
  public var allTags: [String] { Set(rules.flatMap(\.tags)).sorted() }
}
