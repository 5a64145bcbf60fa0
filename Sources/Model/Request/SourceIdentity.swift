// SourceIdentity: identifies the bytes of a source.

/// The identity of a source's bytes, different from all other sources and versions.
public struct SourceIdentity: Hashable, Sendable {
  /// The key of the source.
  public let key: CacheKey
  /// The version of the bytes.
  public let version: UInt64

  /// Creates an identity.
  public init(key: CacheKey, version: UInt64) { (self.key, self.version) = (key, version) }
}
