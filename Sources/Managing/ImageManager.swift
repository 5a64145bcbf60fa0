// ImageManager: the façade that decides where a variant comes from.

import Core

/// The manager between image requests and the places that have images (compare SDWebImageManager).
///
/// A miss takes its way through `Miss.swift`. Flights coalesce requests on two levels: each variant
/// is rendered once and each source is loaded once.
public final class ImageManager: ImageProvider {
  private let parts: ManagerParts
  private let variants: VariantService
  private let invalidation: Invalidation
  private let uploads: Uploads
  private let recompressor: Recompressor

  /// Creates a manager with its tiers, its loader and its image processor.
  ///
  /// - Parameters:
  ///   - purges: the list of purges, shared with the tiers.
  ///   - failures: how long failures are negatively cached.
  ///   - backoff: the times of the back-off from failing origins.
  ///   - imaging: which images may be uploaded and passed through, answered in another format, and
  ///     made smaller once they are popular.
  ///   - workers: the number of imaging workers.
  ///   - storage: where variants are until they are sent.
  ///   - fleet: what machines share; `nil` for a machine that is alone.
  ///   - files: the threads that read files.
  ///   - log: receives warnings about the clock and about slow file reads.
  ///   - now: the wall clock.
  public init(
    memory: any MemoryCache, disk: any DiskCache, loader: any ImageLoader,
    processor: any ImageProcessor, freshnessPolicy: any FreshnessPolicy,
    purges: any PurgeList, failures: FailureSettings = FailureSettings(),
    backoff: FreshnessSettings = FreshnessSettings(),
    imaging: ImagingSettings = ImagingSettings(), workers: Int = 2,
    storage: VariantStorage = .unlimited,
    fleet: (any SharedCache)? = nil,
    files: BlockingThreads = BlockingThreads(name: "pictor-file"),
    log: Log = .silent,
    now: @escaping @Sendable () -> UnixTime = { .now }
  ) {
    parts = ManagerParts(
      memory: memory, disk: disk, loader: loader, processor: processor,
      freshnessPolicy: freshnessPolicy, purges: purges, failures: failures, backoff: backoff,
      imaging: Lock(imaging), workers: workers, storage: storage, fleet: fleet, files: files,
      log: log, now: now)
    variants = VariantService(parts)
    invalidation = Invalidation(variants)
    uploads = Uploads(parts: parts, invalidation: invalidation)
    recompressor = Recompressor(parts)
  }

  /// Applies other times of failures and of the back-off to failures from now on, and the settings of images. The number
  /// of remembered failures stays.
  public func apply(
    _ failures: FailureSettings, _ backoff: FreshnessSettings, _ imaging: ImagingSettings
  ) {
    parts.failures.apply(failures)
    parts.staleness.apply(backoff)
    parts.imaging.withLock { $0 = imaging }
  }

  // MARK: Responses

  /// Returns the variant from memory if it is fresh.
  public func cachedVariant(for key: CacheKey) -> Variant? {
    parts.cache.hit(key, freshAt: parts.now()) { recompressor.add($0) }
  }

  /// Returns whether memory has a fresh variant. Does not update hit statistics.
  public func isCached(_ key: CacheKey) -> Bool { parts.cache.isFresh(key, at: parts.now()) }

  /// Returns a response available without blocking. It is a stale memory entry the request accepts,
  /// a small disk entry in the page cache, or the fallback for a pending AVIF.
  public func deliveryAtOnce(for request: ImageRequest) -> ImageDelivery? {
    variants.deliveryAtOnce(for: request)
  }

  /// Returns a fresh small variant from disk if it is available without blocking, and stores it in memory.
  public func variantOnDisk(for key: CacheKey, of request: () -> ImageRequest?) -> Variant? {
    variants.freshOnDisk(key, of: request)
  }

  /// Returns the response to a request that neither `cachedVariant` nor `deliveryAtOnce` could
  /// answer. Concurrent requests for one variant share a flight.
  public func variant(for request: ImageRequest) async throws(ImageError) -> ImageDelivery {
    try await variants.variant(for: request)
  }

  /// See `ImageProvider`.
  public func follow(
    _ request: ImageRequest, for client: LoadClient,
    completion: @escaping @Sendable (Result<ImageDelivery, ImageError>) -> Void
  ) -> (@Sendable () -> Void)? {
    variants.follow(request, for: client, completion: completion)
  }

  /// Returns the response to a request, as a stream if possible.
  public func answer(to request: ImageRequest) async throws(ImageError) -> ImageAnswer {
    try await variants.stream(request)
  }

  /// See `ImageProvider`.
  public func keepNamed(_ variant: Variant, of request: ImageRequest) async {
    await variants.keepNamed(variant, of: request)
  }

  // MARK: Figures

  /// The number of detached flights that run without waiters.
  public var unattendedCount: Int { variants.unattendedCount + parts.sources.unattendedCount }

  /// The current flights, and counts since the start.
  public var figures: Figures {
    var figures = Figures(of: parts.substitutions)
    variants.add(to: &figures)
    parts.sources.add(to: &figures)
    figures.add(
      "failed_urls", parts.failures.count, "pictor_failed_urls", "Entries of the negative cache.")
    return figures
  }

  /// Stale responses and revalidations since the start.
  public var freshnessFigures: Figures { parts.revalidator.figures }

  /// Recompressed variants since the start.
  public var recompressionFigures: Figures { recompressor.figures }
}

extension ImageManager: ManagerOperations {
  /// See `ManagerOperations`.
  public func failedURLs() -> [FailedURL] { parts.failures.all() }

  /// See `ManagerOperations`.
  public func removeFailedURLs(_ url: SourceURL?) -> Int {
    parts.failures.removeAll(of: url)
  }

  /// See `ManagerOperations`.
  public func cancelAll() -> Int {
    // Cancels variant flights first: their tasks wait for source flights. The other waiters of
    // source flights are clients that stream a source.
    variants.cancelAll() + parts.sources.cancelAll()
  }
}

extension ImageManager: RequestExplainer {
  /// See `RequestExplainer`.
  public func explain(_ request: ImageRequest) async -> Explanation {
    await variants.explain(request)
  }
}

extension ImageManager: CacheOperations {
  /// See `CacheOperations`.
  public func purge(_ scope: PurgeScope) async throws(ImageError) -> PurgeReport {
    try await invalidation.purge(scope)
  }

  /// Applies a purge that another machine has published. Does not publish it again.
  ///
  /// - Throws: `internal` if the purge cannot be made durable.
  public func applyPurge(_ scope: PurgeScope) async throws(ImageError) {
    _ = try await invalidation.apply(scope)
  }

  /// Makes the purges durable for which `applyPurge` could not.
  ///
  /// - Throws: `internal` if they still cannot.
  public func recordPurges() async throws(ImageError) { try await invalidation.recordPurges() }

  /// See `CacheOperations`.
  public func remove(
    _ scope: PurgeScope, from tier: CacheTier, filter: CacheKeyFilter
  ) async throws(ImageError) -> PurgeReport {
    try await invalidation.remove(scope, from: tier, filter: filter)
  }

  /// See `CacheOperations`.
  public func clear(_ tiers: StoreTiers) async throws(ImageError) -> PurgeReport {
    try await invalidation.clear(tiers)
  }

  /// See `CacheOperations`.
  public func clean() async -> CleanReport { await invalidation.clean() }

  /// See `CacheOperations`.
  public func look(for request: ImageRequest) async -> CacheLookup {
    var lookup = await parts.cache.lookUp(request.key)
    lookup.source = await parts.store.entry(of: request.key.source)
    return lookup
  }

  /// See `CacheOperations`.
  public func put(
    _ url: SourceURL, file: FileRegion, origin: OriginResponse
  ) async throws(ImageError) -> PurgeReport {
    try await uploads.store(file, as: url, origin: origin)
  }
}
