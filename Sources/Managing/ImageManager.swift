// ImageManager: the façade that decides where a variant comes from.

import Model
import Platform
import Telemetry

/// The manager between image requests and the places that have images (compare SDWebImageManager).
///
/// A request tries the memory tier, the disk tier, the negative cache, the source on disk and the
/// origin, in this order. Flights coalesce requests on two levels: each variant is rendered once
/// and each source is loaded once.
public final class ImageManager: ImageProvider {
  let memory: any MemoryCache
  let disk: any DiskCache
  let loader: any ImageLoader
  let processor: any ImageProcessor
  let freshnessPolicy: any FreshnessPolicy
  let purges: any PurgeList
  let sourceFormats: Set<ImageFormat>
  let passing: PassingPolicy
  let avifPolicy: AVIFPolicy
  let now: @Sendable () -> UnixTime

  let variantFlights = Flights<FlightKey, MadeVariant>()
  let sourceFlights = Flights<SourceFlightKey, LoadedSource>()
  let failed: Lock<FailedURLs>
  let failing: Lock<OriginBackoff>
  let revalidations = Lock(Revalidations())
  /// Whether small variants may be derived from larger ones.
  let derives: Bool
  let larger = Lock(DerivationCandidates())
  let backlog: Lock<DeferredAVIFQueue>
  let counts = FreshnessCounts()
  let makings = SubstitutionCounters()
  let clockWatch = Lock(ClockWatch())
  let log: Log
  /// Threads for file reads. A blocking read in a task would occupy a thread of the cooperative
  /// pool.
  let files: BlockingThreads
  let changed = SourceVersions()
  let gate = PurgeGate()

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
    files: BlockingThreads = BlockingThreads(name: "pictor-file"),
    log: Log = .silent,
    now: @escaping @Sendable () -> UnixTime = { .now }
  ) {
    self.memory = memory
    self.disk = disk
    self.loader = loader
    self.processor = processor
    self.freshnessPolicy = freshnessPolicy
    self.purges = purges
    self.sourceFormats = sourceFormats
    self.passing = passing
    self.avifPolicy = avifPolicy
    self.derives = derives
    self.files = files
    self.log = log
    self.now = now
    failed = Lock(FailedURLs(policy: failurePolicy))
    failing = Lock(OriginBackoff(policy: stalePolicy))
    backlog = Lock(DeferredAVIFQueue(atOnce: avifPolicy.atOnce))
  }

  /// Returns the variant from memory if it is fresh.
  public func cachedVariant(for key: CacheKey) -> Variant? {
    memory.variant(for: key, freshAt: now())
  }

  /// Returns whether memory has a fresh variant. Does not update hit statistics.
  public func isCached(_ key: CacheKey) -> Bool {
    memory.peek(key)?.info.freshness.isFresh(at: now()) ?? false
  }

  /// Returns a response available without blocking. It is a stale memory entry the request accepts,
  /// a small disk entry in the page cache, or the fallback for a pending AVIF.
  ///
  /// A disk entry is promoted to memory if the request's storage options allow it.
  public func deliveryAtOnce(for request: ImageRequest) -> ImageDelivery? {
    guard request.options.cache.looks else { return nil }
    if let variant = memory.peek(request.key), isRight(variant),
      let use = use(of: variant.info.freshness, by: request)
    {
      return delivery(of: variant, use, from: .memory, to: request, Timings())
    }
    let start = ContinuousClock.now
    guard
      let variant = disk.variantAtOnce(
        for: request.key, where: { use(of: $0.freshness, by: request) != nil }),
      isRight(variant),
      let use = use(of: variant.info.freshness, by: request)
    else { return quickDelivery(for: request) }
    _ = store(variant, in: request.options.store.intersection(.memory))
    var timings = Timings()
    timings.disk = .now - start
    return delivery(of: variant, use, from: .disk, to: request, timings)
  }

  /// The number of detached flights that run without waiters.
  public var unattendedCount: Int {
    variantFlights.unattendedCount + sourceFlights.unattendedCount
  }

  private func delivery(
    of variant: Variant, _ use: KeptUse, from tier: CacheStatus.Tier, to request: ImageRequest,
    _ timings: Timings
  ) -> ImageDelivery {
    let status = status(of: use, variant.info.freshness, from: tier, to: request)
    counts.add(status)
    return ImageDelivery(variant: variant, cacheStatus: status, timings: timings)
  }

  /// Returns the response to a request that neither `cachedVariant` nor `deliveryAtOnce` could
  /// answer. Concurrent requests for one variant share a flight.
  public func variant(for request: ImageRequest) async throws(ImageError) -> ImageDelivery {
    try await variant(for: request, of: nil)
  }

  /// Returns the response to a request that may already hold its source.
  func variant(
    for request: ImageRequest, of held: SourceLease?
  ) async throws(ImageError) -> ImageDelivery {
    let (made, joined) = try await variantFlights.value(
      for: FlightKey(request), share: FlightParticipant(request.options.priority),
      isDetached: request.options.isDetached
    ) { share async throws(ImageError) in try await self.findOrMake(request, share, of: held) }
    counts.add(made.status)
    return ImageDelivery(
      variant: made.variant, cacheStatus: joined ? made.status.collapsed : made.status,
      timings: made.timings)
  }

  /// The current flights, and counts since the start.
  public var figures: FlightFigures {
    var figures = FlightFigures()
    variantFlights.add(to: &figures, running: \.variants)
    sourceFlights.add(to: &figures, running: \.sources)
    figures.failedURLs = failed.withLock { $0.count }
    makings.add(to: &figures)
    figures.avifsWaiting = backlog.withLock { $0.count }
    return figures
  }

  /// Stale responses and revalidations since the start.
  public var freshnessFigures: FreshnessFigures {
    var figures = counts.figures
    figures.revalidating = revalidations.withLock { $0.count }
    figures.failingSources = failing.withLock { $0.count(now: now()) }
    return figures
  }
}

// MARK: - Operations

extension ImageManager: ManagerOperations {
  /// See `ManagerOperations`.
  public func failedURLs() -> [FailedURL] { failed.withLock { $0.all(now: now()) } }

  /// See `ManagerOperations`.
  public func removeFailedURLs(_ url: SourceURL?) -> Int {
    failed.withLock { failed in
      guard let url else { return failed.removeAll() }
      return failed.removeAll { $0.url == url.text }
    }
  }

  /// See `ManagerOperations`.
  public func cancelAll() -> Int {
    // Cancels variant flights first: their tasks wait for source flights. The other waiters of
    // source flights are clients that stream a source.
    variantFlights.cancelAll(.revoked) + sourceFlights.cancelAll(.revoked)
  }
}
