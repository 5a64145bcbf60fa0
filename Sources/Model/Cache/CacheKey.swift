// CacheKey: the key of a source or a variant in the cache.

/// The key of a cache entry.
///
/// - A source's key is its canonical URL.
/// - A variant's key is the URL, a space, and the canonical transform. A URL contains no space, so
///   the key is unambiguous.
/// - If the origin's response depends on the client (`Vary`), `#` and a digest of the client's
///   fields follow the URL, which has no fragment.
///
/// The hash is computed once, at creation. A look-up neither hashes the text nor allocates.
public struct CacheKey: Hashable, Sendable, CustomStringConvertible {
  /// The whole key.
  public let text: String
  /// The number of UTF-8 bytes of `text` that identify the source.
  private let sourceLength: Int
  /// The hash of `text`, computed at creation. Also selects shards.
  public let storedHash: Int

  private init(text: String, sourceLength: Int, hash: Int? = nil) {
    self.text = text
    self.sourceLength = sourceLength
    storedHash = hash ?? text.hashValue
  }

  /// Creates the key of a source.
  public init(source: SourceURL) {
    self.init(text: source.text, sourceLength: source.text.utf8.count)
  }

  /// Creates the key of a variant.
  public init(source: SourceURL, transform: Transform) {
    self.init(
      text: source.text + " " + transform.canonicalText, sourceLength: source.text.utf8.count)
  }

  /// Creates the key of a variant of the source with the key `source`.
  public init(source: CacheKey, transform: Transform) {
    self.init(
      text: source.text + " " + transform.canonicalText, sourceLength: source.sourceLength)
  }

  /// Creates a key from stored `text`, for example from the disk tier.
  public init(text: String) { self.init(text: text, hash: nil) }

  /// Creates a key from `text`. Only tests of colliding hashes give a `hash`.
  init(text: String, hash: Int?) {
    let space = text.utf8.firstIndex(of: UInt8(ascii: " "))
    self.init(
      text: text,
      sourceLength: space.map { text.utf8.distance(from: text.startIndex, to: $0) }
        ?? text.utf8.count,
      hash: hash)
  }

  /// Whether this is the key of a source.
  public var isSource: Bool { sourceLength == text.utf8.count }

  /// The key of the source: this key itself, or the source of this variant.
  public var source: CacheKey {
    isSource
      ? self
      : CacheKey(text: String(text.utf8.prefix(sourceLength)) ?? text, sourceLength: sourceLength)
  }

  /// Returns the key of one variation of a source (`Vary`).
  ///
  /// - Parameter variation: letters and digits that identify the variation.
  public func varied(by variation: String) -> CacheKey {
    let parts = text.utf8.prefix(sourceLength)
    let rest = text.utf8.dropFirst(sourceLength)
    return CacheKey(
      text: String(Substring(parts)) + "#" + variation + String(Substring(rest)),
      sourceLength: sourceLength + 1 + variation.utf8.count)
  }

  /// What `varied(by:)` added; `nil` for a key that all clients share.
  public var variation: String? {
    let parts = text.utf8.prefix(sourceLength)
    guard let mark = parts.firstIndex(of: UInt8(ascii: "#")) else { return nil }
    return String(Substring(parts[parts.index(after: mark)...]))
  }

  /// The URL of the source, without a variation.
  public var url: String {
    String(Substring(text.utf8.prefix(sourceLength).prefix { $0 != UInt8(ascii: "#") }))
  }

  /// The source's host as in the URL, without the port; `nil` for a local file.
  public var host: String? { hostBytes.map { String(Substring($0)) } }

  /// The bytes of `host`. Allocates nothing.
  public var hostBytes: Substring.UTF8View? {
    let bytes = text.utf8
    guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else { return nil }
    // Skips `://` and stops at the path, which a canonical URL always has.
    let authority = bytes[colon...].dropFirst(3).prefix { $0 != UInt8(ascii: "/") }
    // An IPv6 address is bracketed and contains colons.
    let isBracketed = authority.first == UInt8(ascii: "[")
    let end = UInt8(ascii: isBracketed ? "]" : ":")
    let host = authority.dropFirst(isBracketed ? 1 : 0).prefix { $0 != end }
    return host.isEmpty ? nil : host
  }

  /// The whole key.
  public var description: String { text }

  /// Compares the hashes, then the texts.
  public static func == (left: CacheKey, right: CacheKey) -> Bool {
    left.storedHash == right.storedHash && left.text == right.text
  }

  /// Feeds the stored hash.
  public func hash(into hasher: inout Hasher) { hasher.combine(storedHash) }
}
