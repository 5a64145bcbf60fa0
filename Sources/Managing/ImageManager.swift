// ImageManager: decides where an image comes from. It reads as a table of contents; flights live beside it.

import Model
import Platform
import Telemetry

/// The one manager between everyone who wants an image and everyone who has one (SDWebImageManager).
///
/// Memory tier → disk tier → failed URLs → source on disk → origin. Two levels of flights: however many ask, one
/// variant is made once and one source is loaded once.
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
  /// Whether small images may be made of larger ones.
  let derives: Bool
  let larger = Lock(DerivationCandidates())
  let backlog: Lock<DeferredAVIFQueue>
  let counts = FreshnessCounts()
  let makings = SubstitutionCounters()
  let clockWatch = Lock(ClockWatch())
  let log: Log
  /// For reading files: a task would hold up others where the disk is slow.
  let files: BlockingThreads
  let changed = SourceVersions()
  let gate = PurgeGate()

  /// A manager over its tiers, its loader and its workers.
  ///
  /// - Parameters:
  ///   - purges: what was taken out of the tiers, which share the list.
  ///   - failurePolicy: what is remembered of failures.
  ///   - stalePolicy: how origins are spared that failed.
  ///   - sourceFormats: what an image may be in that somebody puts here.
  ///   - passing: what may be sent as it came from an origin, where a request lets it.
  ///   - avifPolicy: whether negotiated AVIFs are waited for.
  ///   - derives: whether small images may be made of larger ones where their source is not kept.
  ///   - files: threads that read files.
  ///   - log: is told that the clock was set back.
  ///   - now: the wall clock.
  public init(
    memory: any MemoryCache, disk: any DiskCache, loader: any ImageLoader,
    processor: any ImageProcessor, freshnessPolicy: any FreshnessPolicy,
    purges: any PurgeList, failurePolicy: FailurePolicy = FailurePolicy(),
    stalePolicy: StalePolicy = StalePolicy(),
    sourceFormats: Set<ImageFormat> = Set(ImageFormat.inputs),
    passing: PassingPolicy = PassingPolicy(), avifPolicy: AVIFPolicy = AVIFPolicy(),
    derives: Bool = true, files: BlockingThreads = BlockingThreads(name: "pictor-file"),
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

  /// What memory holds and is fresh.
  public func cachedVariant(for key: CacheKey) -> Variant? {
    memory.variant(for: key, freshAt: now())
  }

  /// Whether memory holds what is fresh. Not counted.
  public func isCached(_ key: CacheKey) -> Bool {
    memory.peek(key)?.info.freshness.isFresh(at: now()) ?? false
  }

  /// What memory has that is not fresh enough for everybody, or stands in for an AVIF, or the disk tier can give without
  /// waiting, if the request may have it; the latter is in memory from then on, if the request lets it.
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

  /// Work that goes on for detached requests whose clients have gone.
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

  /// The answer to a request that neither of these had: from the first place that has it, else made, once
  /// for all who ask meanwhile.
  public func variant(for request: ImageRequest) async throws(ImageError) -> ImageDelivery {
    try await variant(for: request, of: nil)
  }

  /// The same, with a source that this request has its share in already.
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

  /// Flights as they are now, and counts since the start.
  public var figures: FlightFigures {
    var figures = FlightFigures()
    variantFlights.add(to: &figures, running: \.variants)
    sourceFlights.add(to: &figures, running: \.sources)
    figures.failedURLs = failed.withLock { $0.count }
    makings.add(to: &figures)
    figures.avifsWaiting = backlog.withLock { $0.count }
    return figures
  }

  /// What was served stale since the start.
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
    // Variant flights first: the waiters of source flights are their tasks, which end with them, and clients that read
    // a source while it comes in.
    variantFlights.cancelAll(.revoked) + sourceFlights.cancelAll(.revoked)
  }
}
