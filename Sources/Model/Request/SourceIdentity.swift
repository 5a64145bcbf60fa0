// SourceIdentity: one source's bytes, told apart from all others.

/// Tells one source's bytes from those of every other, and from other bytes of its own.
public struct SourceIdentity: Hashable, Sendable {
  /// The source's key.
  public let key: CacheKey
  /// The version of its bytes.
  public let version: UInt64

  /// The identity of a source.
  public init(key: CacheKey, version: UInt64) { (self.key, self.version) = (key, version) }
}
