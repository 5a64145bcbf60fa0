// ImageManager: the façade that decides where a variant comes from.

import Model
import Platform
import Telemetry

/// The manager between image requests and the places that have images (compare SDWebImageManager).
///
/// The initializer connects the collaborators, and lists the steps of a miss in order. Flights
/// coalesce requests on two levels: each variant is rendered once and each source is loaded once.
public final class ImageManager: ImageProvider {
  private let cache: VariantCache
  private let variants: VariantService
  private let sources: SourceService
  private let sourceStore: SourceStore
  private let passThrough: PassThrough
  private let failures: NegativeCache
  private let passing: PassingPolicy
  private let avifPolicy: AVIFPolicy
  private let recompression: RecompressionPolicy
  private let derives: Lock<Bool>
  private let staleness: Staleness
  private let invalidation: Invalidation
  private let uploads: Uploads
  private let aliases: FormatAliases
  private let substitutions: SubstitutionCounters
  private let revalidator: Revalidator
  private let recompressor: Recompressor
  private let explainer: Explainer
  private let now: @Sendable () -> UnixTime

  /// Creates a manager with its tiers, its loader and its image processor.
  ///
  /// - Parameters:
  ///   - purges: the list of purges, shared with the tiers.
  ///   - failurePolicy: how long failures are negatively cached.
  ///   - stalePolicy: the back-off from failing origins.
  ///   - sourceFormats: the formats accepted for uploaded images.
  ///   - passing: which sources may be passed through.
  ///   - avifPolicy: how requests that negotiate AVIF are answered.
  ///   - derives: whether small variants may be derived from larger ones if their source is not
  ///     cached.
  ///   - recompression: which variants are made smaller once they are popular.
  ///   - storage: where variants are until they are sent.
  ///   - fleet: what machines share; `nil` for a machine that is alone.
  ///   - files: the threads that read files.
  ///   - log: receives warnings about the clock and about slow file reads.
  ///   - now: the wall clock.
  public init(
    memory: any MemoryCache, disk: any DiskCache, loader: any ImageLoader,
    processor: any ImageProcessor, freshnessPolicy: any FreshnessPolicy,
    purges: any PurgeList, failurePolicy: FailurePolicy = FailurePolicy(),
    stalePolicy: StalePolicy = StalePolicy(),
    sourceFormats: Set<ImageFormat> = Set(ImagingSettings().formats),
    passing: PassingPolicy = PassingPolicy(), avifPolicy: AVIFPolicy = AVIFPolicy(),
    derives: Bool = ImagingSettings().derives,
    recompression: RecompressionPolicy = RecompressionPolicy(),
    storage: VariantStorage = .unlimited,
    fleet: (any SharedCache)? = nil,
    files: BlockingThreads = BlockingThreads(name: "pictor-file"),
    log: Log = .silent,
    now: @escaping @Sendable () -> UnixTime = { .now }
  ) {
    let derives = Lock(derives)
    let files = FileReader(threads: files, storage: storage, log: log)
    let freshness = FreshnessEvaluator(policy: freshnessPolicy, now: now)
    let freshnessCounters = FreshnessCounters()
    let substitutions = SubstitutionCounters()
    let validity = EntryValidity(purges: purges)
    let sweep = MemorySweep(memory: memory, purges: purges, validity: validity)
    let cache = VariantCache(
      memory: memory, sweep: sweep, disk: disk, validity: validity, recompression: recompression,
      fleet: fleet)
    let store = SourceStore(disk: disk, variants: cache, validity: validity)
    let failures = NegativeCache(policy: failurePolicy, purges: purges, now: now)
    let staleness = Staleness(policy: stalePolicy, now: now)
    let requests = RenderRequests(policy: recompression)
    let lookup = VariantLookup(cache: cache, staleness: staleness, requests: requests)
    let candidates = Lock(DerivationCandidates())
    let revalidator = Revalidator(
      staleness: staleness, failures: failures, counters: freshnessCounters)
    let sources = SourceService(
      store: store,
      fetcher: SourceFetcher(
        loader: loader, store: store, freshness: freshness, staleness: staleness),
      failures: failures, staleness: staleness, revalidator: revalidator, validity: validity,
      clock: ClockMonitor(counters: freshnessCounters, log: log, now: now))
    let plainSources = PassThroughSources(
      policy: passing, files: files, processor: processor, store: store, failures: failures,
      freshness: freshness, validity: validity)
    let steps: [any MissStep] = [
      // Answers from the tiers.
      MemoryStep(lookup: lookup),
      DiskStep(lookup: lookup, candidates: candidates),
      SharedStep(lookup: lookup, sources: store, candidates: candidates),
      // Answers that need no source.
      FallbackFormatStep(policy: avifPolicy),
      NegativeCacheStep(failures: failures),
      DerivationStep(
        isEnabled: derives, candidates: candidates, cache: cache, sources: store,
        staleness: staleness, processor: processor, storage: storage, counters: substitutions),
      // Source and watermark, and answers that need no rendering.
      SourceStep(
        sources: sources, staleOnError: StaleOnError(sources: store, staleness: staleness),
        validity: validity),
      StaleReuseStep(now: now),
      WatermarkStep(watermarks: WatermarkLoader(sources: sources, failures: failures)),
      FallbackFormatStep(policy: avifPolicy),
      // The variant.
      RenewalStep(),
      PassThroughStep(sources: plainSources),
      RenderStep(processor: processor, sources: store, failures: failures, freshness: freshness),
      SmallerFallbackStep(policy: avifPolicy, cache: cache, files: files),
      KeepOriginalStep(policy: passing, files: files, counters: substitutions),
      StoreStep(
        cache: cache, failures: failures, candidates: candidates, requests: requests, now: now),
    ]
    let variants = VariantService(
      steps: steps, lookup: lookup,
      deferredAVIF: DeferredAVIF(
        policy: avifPolicy, cache: cache, files: files, validity: validity,
        counters: substitutions, now: now),
      revalidator: revalidator)
    let invalidation = Invalidation(
      memory: memory, sweep: sweep, disk: disk, purges: purges, validity: validity,
      failures: failures,
      sources: sources, variants: variants, fleet: fleet)
    self.cache = cache
    self.variants = variants
    self.sources = sources
    sourceStore = store
    passThrough = PassThrough(
      plainSources: plainSources, lookup: lookup, failures: failures, sources: sources,
      variants: variants)
    self.failures = failures
    self.passing = passing
    self.avifPolicy = avifPolicy
    self.recompression = recompression
    self.derives = derives
    self.staleness = staleness
    self.invalidation = invalidation
    uploads = Uploads(
      formats: sourceFormats, files: files, freshness: freshness, store: store,
      invalidation: invalidation)
    aliases = FormatAliases(cache: cache, policy: avifPolicy, files: files, now: now)
    self.substitutions = substitutions
    self.revalidator = revalidator
    recompressor = Recompressor(
      policy: recompression, cache: cache, processor: processor,
      jobs: RecompressionJobs(
        policy: recompression, requests: requests, sources: store, loader: loader, files: files,
        storage: storage))
    explainer = Explainer(
      steps: steps, cache: cache, sources: sources, sourceStore: store, failures: failures,
      staleness: staleness, variants: variants, now: now)
    self.now = now
  }

  /// Applies other times of failures and of the back-off to failures from now on, and the settings of images. The number
  /// of remembered failures stays.
  public func apply(
    _ failurePolicy: FailurePolicy, _ stalePolicy: StalePolicy, _ imaging: ImagingSettings
  ) {
    failures.apply(failurePolicy)
    staleness.apply(stalePolicy)
    passing.apply(imaging)
    avifPolicy.apply(imaging)
    recompression.apply(imaging)
    derives.withLock { $0 = imaging.derives }
    uploads.formats.withLock { $0 = Set(imaging.formats) }
  }

  // MARK: Responses

  /// Returns the variant from memory if it is fresh.
  public func cachedVariant(for key: CacheKey) -> Variant? {
    cache.hit(key, freshAt: now()) { recompressor.add($0) }
  }

  /// Returns whether memory has a fresh variant. Does not update hit statistics.
  public func isCached(_ key: CacheKey) -> Bool { cache.isFresh(key, at: now()) }

  /// Returns a response available without blocking. It is a stale memory entry the request accepts,
  /// a small disk entry in the page cache, or the fallback for a pending AVIF.
  public func deliveryAtOnce(for request: ImageRequest) -> ImageDelivery? {
    variants.deliveryAtOnce(for: request)
  }

  /// Returns a fresh small variant from disk if it is available without blocking, and stores it in memory.
  public func variantOnDisk(for key: CacheKey, of request: () -> ImageRequest?) -> Variant? {
    variants.freshOnDisk(key, at: now(), of: request)
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
    try await passThrough.answer(to: request)
  }

  /// See `ImageProvider`.
  public func keepNamed(_ variant: Variant, of request: ImageRequest) async {
    await aliases.store(variant, of: request)
  }

  // MARK: Figures

  /// The number of detached flights that run without waiters.
  public var unattendedCount: Int { variants.unattendedCount + sources.unattendedCount }

  /// The current flights, and counts since the start.
  public var figures: Figures {
    var figures = Figures(of: substitutions)
    variants.add(to: &figures)
    sources.add(to: &figures)
    figures.add(
      "failed_urls", failures.count, "pictor_failed_urls", "Entries of the negative cache.")
    return figures
  }

  /// Stale responses and revalidations since the start.
  public var freshnessFigures: Figures { revalidator.figures }

  /// Recompressed variants since the start.
  public var recompressionFigures: Figures { recompressor.figures }
}

extension ImageManager: ManagerOperations {
  /// See `ManagerOperations`.
  public func failedURLs() -> [FailedURL] { failures.all() }

  /// See `ManagerOperations`.
  public func removeFailedURLs(_ url: SourceURL?) -> Int {
    failures.removeAll(of: url)
  }

  /// See `ManagerOperations`.
  public func cancelAll() -> Int {
    // Cancels variant flights first: their tasks wait for source flights. The other waiters of
    // source flights are clients that stream a source.
    variants.cancelAll() + sources.cancelAll()
  }
}

extension ImageManager: RequestExplainer {
  /// See `RequestExplainer`.
  public func explain(_ request: ImageRequest) async -> Explanation {
    await explainer.explain(request)
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
    var lookup = await cache.lookUp(request.key)
    lookup.source = await sourceStore.entry(of: request.key.source)
    return lookup
  }

  /// See `CacheOperations`.
  public func put(
    _ url: SourceURL, file: FileRegion, origin: OriginResponse
  ) async throws(ImageError) -> PurgeReport {
    try await uploads.store(file, as: url, origin: origin)
  }
}
