// Variant: the result of one transform of one source, shared by all responses.

import Synchronization

/// The metadata of a variant. The order of the properties leaves few gaps in memory.
public struct VariantInfo: Hashable, Sendable {
  /// What the bytes are.
  public var content: VariantContent
  /// The strong validator.
  public var etag: EntityTag
  /// Whether the source has damage that the decoder tolerated (`X-Damaged`). Damaged variants are
  /// never stored on disk.
  public var isDamaged = false
  /// Whether the bytes are as few as more effort makes them: they were recompressed, or that made
  /// them no fewer. Such a variant is never recompressed.
  public var isRecompressed = false
  /// Whether the source or the watermark is this machine's alone: an upload, or a local file. Other
  /// machines may have another image there, so such a variant is not shared.
  public var isLocal = false
  /// The origin's `Last-Modified`, if valid.
  public var lastModified: UnixTime?
  /// The freshness of the source, limited by the watermark's.
  public var freshness: Freshness
  /// The version of the source, 0 if unknown. A variant is revalidated only with a source of the
  /// same version.
  public var sourceVersion: UInt64
  /// The version of the watermark, 0 without one.
  public var watermarkVersion: UInt64
  /// The generation of the source; see `PurgeList`.
  public var generation: Int

  /// Creates the metadata of a variant.
  public init(
    _ content: VariantContent, etag: EntityTag, lastModified: UnixTime? = nil, freshness: Freshness,
    sourceVersion: UInt64 = 0, watermarkVersion: UInt64 = 0, generation: Int = 0
  ) {
    self.content = content
    self.etag = etag
    self.lastModified = lastModified
    self.freshness = freshness
    self.sourceVersion = sourceVersion
    self.watermarkVersion = watermarkVersion
    self.generation = generation
  }

  /// The properties of the image; `nil` for a description.
  public var image: RenderedImage? { content.image }
}

/// A rendered image or a description, shared by all its responses.
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
  /// What a hit still has to do: the highest bit is set while the disk tier waits for a second
  /// request, the others count the hits that are left until the variant is popular. Mostly 0.
  @usableFromInline let errands = Atomic<UInt32>(0)
  @usableFromInline static let deferral: UInt32 = 1 << 31

  /// Creates a variant.
  public init(key: CacheKey, info: VariantInfo, body: Body) {
    self.key = key
    self.info = info
    self.body = body
  }

  /// Whether a hit has more to do than to serve the variant: it is deferred, or its hits are
  /// counted. Each hit reads it.
  @inlinable public var hasErrand: Bool { errands.load(ordering: .relaxed) != 0 }

  /// Whether the disk tier waits for a second request before it stores the variant
  /// (`StoreOutcome.deferred`).
  @inlinable public var isDeferred: Bool {
    errands.load(ordering: .relaxed) & Self.deferral != 0
  }

  /// Marks the variant as deferred.
  public func deferStoring() { errands.bitwiseOr(Self.deferral, ordering: .relaxed) }

  /// Ends the deferral. Returns whether there was one, to one caller only.
  public func endDeferral() -> Bool {
    errands.bitwiseAnd(~Self.deferral, ordering: .relaxed).oldValue & Self.deferral != 0
  }

  /// Whether hits are counted.
  public var hasCountedHits: Bool { errands.load(ordering: .relaxed) & ~Self.deferral != 0 }

  /// Counts hits from now on. Call it when none are counted.
  ///
  /// - Parameter hits: after how many the variant is popular, 1 to 2^31 - 1.
  public func countHits(_ hits: Int) {
    errands.bitwiseOr(UInt32(clamping: hits) & ~Self.deferral, ordering: .relaxed)
  }

  /// Counts a hit. Returns whether it made the variant popular, to one caller only. Concurrent hits
  /// may count as one.
  public func countHit() -> Bool {
    let before = errands.load(ordering: .relaxed)
    guard before & ~Self.deferral > 0 else { return false }
    let (isCounted, _) = errands.compareExchange(
      expected: before, desired: before - 1, ordering: .relaxed)
    return isCounted && (before - 1) & ~Self.deferral == 0
  }
}

/// A write-once slot for a prepared response, or a part of one.
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

/// What a server prepares once per variant, or per delivery that requests share. Only `Serving`
/// subclasses it.
open class PreparedAnswer: @unchecked Sendable {
  // Sound as Sendable: it has no state of its own, and its subclasses guard what they add.

  /// Creates an empty response.
  public init() {}
}
