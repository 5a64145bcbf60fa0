// CacheKey: the name under which a source or one of its variants is kept.

/// The name of something kept: a source (its canonical URL), or a variant (the same, a space, and its canonical
/// transform). A URL holds no space, so a variant's key names its source without ambiguity. Where the origin's answer
/// depends on the client, `#` and a digest of what it depends on stand behind the URL, which has no fragment.
///
/// The hash is computed once, when the key is made; looking up costs neither a hash of the text nor an allocation.
public struct CacheKey: Hashable, Sendable, CustomStringConvertible {
  /// The whole name.
  public let text: String
  /// How many UTF-8 bytes of `text` name the source.
  private let sourceLength: Int
  /// The hash of `text`, computed when the key was made: good for choosing a shard without hashing again.
  public let storedHash: Int

  private init(text: String, sourceLength: Int) {
    self.text = text
    self.sourceLength = sourceLength
    storedHash = text.hashValue
  }

  /// The key of a source.
  public init(source: SourceURL) {
    self.init(text: source.text, sourceLength: source.text.utf8.count)
  }

  /// The key of what `transform` makes of a source.
  public init(source: SourceURL, transform: Transform) {
    self.init(
      text: source.text + " " + transform.canonicalText, sourceLength: source.text.utf8.count)
  }

  /// The key of what `transform` makes of the source that has the key `source`.
  public init(source: CacheKey, transform: Transform) {
    self.init(
      text: source.text + " " + transform.canonicalText, sourceLength: source.sourceLength)
  }

  /// The key whose `text` was written down earlier, as the disk tier does.
  public init(text: String) {
    let space = text.utf8.firstIndex(of: UInt8(ascii: " "))
    self.init(
      text: text,
      sourceLength: space.map { text.utf8.distance(from: text.startIndex, to: $0) }
        ?? text.utf8.count)
  }

  /// Whether this is a source's key.
  public var isSource: Bool { sourceLength == text.utf8.count }

  /// The key of the source: of itself, or of what this variant was made from.
  public var source: CacheKey {
    isSource
      ? self
      : CacheKey(text: String(text.utf8.prefix(sourceLength)) ?? text, sourceLength: sourceLength)
  }

  /// The key of one of several sources that an origin has for a URL. `variation` tells it from the others: letters and
  /// digits.
  public func varied(by variation: String) -> CacheKey {
    let parts = text.utf8.prefix(sourceLength)
    let rest = text.utf8.dropFirst(sourceLength)
    return CacheKey(
      text: String(Substring(parts)) + "#" + variation + String(Substring(rest)),
      sourceLength: sourceLength + 1 + variation.utf8.count)
  }

  /// The URL of the source, whichever of several it is.
  public var url: String {
    String(Substring(text.utf8.prefix(sourceLength).prefix { $0 != UInt8(ascii: "#") }))
  }

  /// The source's host as it stands in the URL, without the port; `nil` for a local file.
  public var host: String? {
    let bytes = text.utf8
    guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else { return nil }
    // Behind "://" up to the path, which a canonical URL always has.
    let authority = bytes[colon...].dropFirst(3).prefix { $0 != UInt8(ascii: "/") }
    // An IPv6 address stands in brackets and holds colons of its own.
    let isBracketed = authority.first == UInt8(ascii: "[")
    let end = UInt8(ascii: isBracketed ? "]" : ":")
    let host = authority.dropFirst(isBracketed ? 1 : 0).prefix { $0 != end }
    return host.isEmpty ? nil : String(Substring(host))
  }

  /// The whole name.
  public var description: String { text }

  /// Equal names are equal keys.
  public static func == (left: CacheKey, right: CacheKey) -> Bool {
    left.storedHash == right.storedHash && left.text == right.text
  }

  /// Feeds the hash that was computed when the key was made.
  public func hash(into hasher: inout Hasher) { hasher.combine(storedHash) }
}
