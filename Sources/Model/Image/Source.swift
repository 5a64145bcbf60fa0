// Source and Variant: what was fetched, and what was made of it.

import Synchronization

/// An image as its origin sent it, whole; kept so that a second size costs no download.
public final class Source: Sendable {
  /// Its name, and the key it is kept under.
  public let key: CacheKey
  /// The bytes: a sealed memory file, a file of the disk tier, or a local file.
  public let file: FileRegion
  /// What the origin said with it.
  public let origin: OriginResponse
  /// How long it may be served unasked.
  public let freshness: Freshness
  /// Tells these bytes from any others that were fetched for the key: a number made by chance when they came, which
  /// a revalidation does not change. 0: not known.
  public let version: UInt64
  /// The number of the last purge when its loading began; see `PurgeList`.
  public let generation: Int

  /// A source that was fetched or read back whole.
  public init(
    key: CacheKey, file: FileRegion, origin: OriginResponse, freshness: Freshness,
    version: UInt64 = .random(in: 1...(.max)), generation: Int = 0
  ) {
    (self.key, self.file, self.origin, self.freshness) = (key, file, origin, freshness)
    (self.version, self.generation) = (version, generation)
  }
}

/// What is known about a variant besides its bytes.
public struct VariantInfo: Hashable, Sendable, Codable {
  /// Format of the bytes.
  public var format: ImageFormat
  /// Size in pixels.
  public var size: PixelSize
  /// Frames, 1 for a still.
  public var frames: Int
  /// Pixels per point of what is sent, as in `Content-DPR`.
  public var density: Double
  /// Size in pixels it would have had, where large-image downsizing made it smaller (`X-Scaled-Down`).
  public var scaledDownFrom: PixelSize?
  /// Lossy quality, 1–100, where `maxbytes` decided it (`X-Quality`).
  public var quality: Int?
  /// Strong validator (RFC 9110, section 8.8.3), with its quotes.
  public var etag: String
  /// The origin's `Last-Modified`, where it sent a valid one.
  public var lastModified: String?
  /// The source's freshness, or the watermark's where that is stale sooner: a variant is as fresh as what it was made of.
  public var freshness: Freshness
  /// The source's version, 0 where it is not known: only a variant of the kept source's version is renewed with it.
  public var sourceVersion: UInt64
  /// The version of the watermark on it, 0 without one.
  public var watermarkVersion: UInt64
  /// The source's generation; see `PurgeList`.
  public var generation: Int
  /// Whether its source has damage that the decoder got over (`X-Damaged`). Never on disk.
  public var isDamaged = false

  /// All of it.
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

/// A finished image, shared by everyone it is sent to.
public final class Variant: Sendable {
  /// Where its bytes are.
  public enum Body: Sendable {
    /// In memory, sent from there.
    case memory(ImageBytes)
    /// In a file: in memory, sent with sendfile(2), or on disk, sent in pieces.
    case file(FileRegion)

    /// How many bytes there are.
    public var count: Int {
      switch self {
      case .memory(let bytes): bytes.count
      case .file(let region): region.count
      }
    }
  }

  /// The key it is kept under.
  public let key: CacheKey
  /// What it is.
  public let info: VariantInfo
  /// Its bytes.
  public let body: Body
  /// Room for what `Serving` prepares once for all who get it: set at the first answer, never replaced.
  public let prepared = PreparedPlace()

  /// A finished image.
  public init(key: CacheKey, info: VariantInfo, body: Body) {
    (self.key, self.info, self.body) = (key, info, body)
  }
}

/// Room for one prepared answer, filled once by whoever comes first.
///
/// `Synchronization.AtomicLazyReference` does the same, but is not specialized for what it holds: reading it was a
/// fifth of the instructions a hit cost us.
public struct PreparedPlace: ~Copyable, Sendable {
  // What is stored here holds a reference, which `deinit` gives back.
  @usableFromInline let stored = Atomic<Unmanaged<PreparedAnswer>?>(nil)

  deinit { stored.load(ordering: .acquiring)?.release() }

  /// What is here.
  @inlinable public func load() -> PreparedAnswer? {
    stored.load(ordering: .acquiring)?.takeUnretainedValue()
  }

  /// Stores an answer where there is none yet, and returns what is here now.
  public func storeIfNil(_ answer: PreparedAnswer) -> PreparedAnswer {
    let retained = Unmanaged.passRetained(answer)
    let (isStored, earlier) = stored.compareExchange(
      expected: nil, desired: retained, ordering: .acquiringAndReleasing)
    guard !isStored, let earlier else { return answer }
    retained.release()
    return earlier.takeUnretainedValue()
  }
}

/// What a server prepares once for a variant; `Serving` alone subclasses it and knows what is inside.
open class PreparedAnswer: @unchecked Sendable {
  // Sound as Sendable: it has no state of its own, and its one subclass guards what it adds.

  /// Nothing prepared yet.
  public init() {}
}
