// StoredSourceCoding: the metadata of a source as bytes, as its file has it.

import Model
import Platform

/// The coding of sources for the shared tier: the metadata as in a file.
public struct StoredSourceCoding: SourceCoding {
  private let longestLifetime: Int

  /// - Parameter longestLifetime: the longest lifetime of a decoded source, in seconds.
  public init(longestLifetime: Int = FreshnessConfiguration().longestLifetime) {
    self.longestLifetime = longestLifetime
  }

  /// See `SourceCoding`.
  public func encode(_ source: Source) -> [UInt8] {
    EntryMetadata(
      key: source.key.text,
      content: .source(
        source.origin, source.freshness, version: source.version, generation: source.generation)
    ).encoded()
  }

  /// See `SourceCoding`.
  public func decode(
    _ bytes: UnsafeRawBufferPointer, as key: CacheKey, generation: Int
  ) -> (freshness: Freshness, make: @Sendable (FileRegion) -> Source)? {
    guard
      let metadata = EntryMetadata(kind: .source, decoding: bytes)?
        .bounded(to: longestLifetime, at: .now), metadata.key == key.text,
      case .source(let origin, let freshness, let version, _) = metadata.content,
      version != 0, !origin.isUploaded
    else { return nil }
    return (
      freshness,
      { file in
        Source(
          key: key, file: file, origin: origin, freshness: freshness, version: version,
          generation: generation)
      }
    )
  }
}
