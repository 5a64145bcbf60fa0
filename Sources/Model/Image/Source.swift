// Source: an image as its origin sent it.

/// An image as its origin sent it. Stored so that further variants need no download.
public final class Source: Sendable {
  /// The cache key.
  public let key: CacheKey
  /// The bytes: a sealed memory file, a file of the disk tier, or a local file.
  public let file: FileRegion
  /// The origin's response.
  public let origin: OriginResponse
  /// The freshness of the source.
  public let freshness: Freshness
  /// A random number that identifies these bytes among all bytes downloaded for the key. A
  /// revalidation keeps it. 0: unknown.
  public let version: UInt64
  /// The number of the last purge when the load began; see `PurgeList`.
  public let generation: Int

  /// Creates a source.
  public init(
    key: CacheKey, file: FileRegion, origin: OriginResponse, freshness: Freshness,
    version: UInt64 = .random(in: 1...(.max)), generation: Int = 0
  ) {
    self.key = key
    self.file = file
    self.origin = origin
    self.freshness = freshness
    self.version = version
    self.generation = generation
  }
}

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
