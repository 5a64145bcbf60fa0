// Source: the original image (`Source`) and its rendered result (`Variant`).

import Platform
import Synchronization

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
    (self.key, self.file, self.origin, self.freshness) = (key, file, origin, freshness)
    (self.version, self.generation) = (version, generation)
  }
}

/// The metadata of a variant.
public struct VariantInfo: Hashable, Sendable, Codable {
  /// The format of the bytes.
  public var format: ImageFormat
  /// The size in pixels.
  public var size: PixelSize
  /// The number of frames, 1 for a still image.
  public var frames: Int
  /// Pixels per point, as in `Content-DPR`.
  public var density: Double
  /// The size in pixels before large-image downscaling, if it applied (`X-Scaled-Down`).
  public var scaledDownFrom: PixelSize?
  /// The lossy quality, 1–100, if `maxbytes` determined it (`X-Quality`).
  public var quality: Int?
  /// The strong validator (RFC 9110, section 8.8.3), with its quotes.
  public var etag: String
  /// The origin's `Last-Modified`, if valid.
  public var lastModified: String?
  /// The freshness of the source, limited by the watermark's.
  public var freshness: Freshness
  /// The version of the source, 0 if unknown. A variant is revalidated only with a source of the
  /// same version.
  public var sourceVersion: UInt64
  /// The version of the watermark, 0 without one.
  public var watermarkVersion: UInt64
  /// The generation of the source; see `PurgeList`.
  public var generation: Int
  /// Whether the source has damage that the decoder tolerated (`X-Damaged`). Damaged variants are
  /// never stored on disk.
  public var isDamaged = false

  /// Creates the metadata of a variant.
  public init(
    format: ImageFormat, size: PixelSize, frames: Int = 1, density: Double,
    scaledDownFrom: PixelSize? = nil, quality: Int? = nil, etag: String,
    lastModified: String? = nil,
    freshness: Freshness, sourceVersion: UInt64 = 0, watermarkVersion: UInt64 = 0,
    generation: Int = 0
  ) {
    self.format = format
    self.size = size
    self.frames = frames
    self.density = density
    self.scaledDownFrom = scaledDownFrom
    self.quality = quality
    self.etag = etag
    self.lastModified = lastModified
    self.freshness = freshness
    self.sourceVersion = sourceVersion
    self.watermarkVersion = watermarkVersion
    self.generation = generation
  }
}

/// A rendered image, shared by all its responses.
public final class Variant: Sendable {
  /// The storage of a variant's bytes.
  public enum Body: Sendable {
    /// Bytes in memory.
    case memory(ImageBytes)
    /// In a file: in memory, sent with sendfile(2), or on disk, sent in pieces.
    case file(FileRegion)

    /// The number of bytes.
    public var count: Int {
      switch self {
      case .memory(let bytes): bytes.count
      case .file(let region): region.count
      }
    }
  }

  /// The cache key.
  public let key: CacheKey
  /// The metadata.
  public let info: VariantInfo
  /// The bytes.
  public let body: Body
  /// The prepared response, set by `Serving` with the first response and never replaced.
  public let prepared = PreparedPlace()

  /// Creates a variant.
  public init(key: CacheKey, info: VariantInfo, body: Body) {
    (self.key, self.info, self.body) = (key, info, body)
  }
}

/// A write-once slot for a prepared response.
///
/// `Synchronization.AtomicLazyReference` is equivalent, but is not specialized for its content and
/// slows every hit.
public struct PreparedPlace: ~Copyable, Sendable {
  // The stored value holds a retained reference. `deinit` releases it.
  @usableFromInline let stored = Atomic<Unmanaged<PreparedAnswer>?>(nil)

  deinit { stored.load(ordering: .acquiring)?.release() }

  /// Returns the stored response, if any.
  @inlinable public func load() -> PreparedAnswer? {
    stored.load(ordering: .acquiring)?.takeUnretainedValue()
  }

  /// Stores a response if the slot is empty. Returns the stored response.
  public func storeIfNil(_ answer: PreparedAnswer) -> PreparedAnswer {
    let retained = Unmanaged.passRetained(answer)
    let (isStored, earlier) = stored.compareExchange(
      expected: nil, desired: retained, ordering: .acquiringAndReleasing)
    guard !isStored, let earlier else { return answer }
    retained.release()
    return earlier.takeUnretainedValue()
  }
}

/// A response that a server prepares once per variant. Only `Serving` subclasses it.
open class PreparedAnswer: @unchecked Sendable {
  // Sound as Sendable: it has no state of its own, and its one subclass guards what it adds.

  /// Creates an empty response.
  public init() {}
}
