// SourceIdentity: identifies the bytes of a source.

/// Identifies the bytes of a source: equal identities mean equal bytes.
public struct SourceIdentity: Hashable, Sendable {
  /// The key of the source.
  public let key: CacheKey
  /// `Source.version`: random for a download, a hash for a local file.
  public let version: UInt64

  /// Creates an identity.
  public init(key: CacheKey, version: UInt64) {
    self.key = key
    self.version = version
  }
}
