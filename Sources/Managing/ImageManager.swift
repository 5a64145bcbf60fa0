// ImageManager: decides where a variant comes from, with the parts that it works with.

import Core

/// The manager between image requests and the places that have images (compare SDWebImageManager).
///
/// A miss takes its way through `Miss.swift`. Flights coalesce requests on two levels: each variant
/// is rendered once and each source is loaded once.
public final class ImageManager: Sendable {
  let parts: ManagerParts
  let sources: SourceService
  let deferredAVIF: DeferredAVIF
  let recompressor: Recompressor
  let flights = Flights<FlightKey, FlightDeliveries>()

  /// Creates a manager with its tiers, its loader and its image processor, and connects its parts.
  ///
  /// - Parameters:
  ///   - imaging: which formats are accepted, passed through, deferred and recompressed.
  ///   - workers: the number of imaging workers, at least 1.
  ///   - storage: where variants are until they are sent.
  ///   - fleet: what machines share; `nil` for a machine that is alone.
  ///   - log: receives warnings about the clock and about slow file reads.
  public init(
    memory: any MemoryCache, disk: any DiskCache, loader: any ImageLoader,
    processor: any ImageProcessor, freshnessPolicy: any FreshnessPolicy,
    purges: any PurgeList, failures: FailureSettings = FailureSettings(),
    stale: FreshnessSettings = FreshnessSettings(),
    imaging: ImagingSettings = ImagingSettings(), workers: Int = 2,
    storage: VariantStorage = .unlimited, fleet: (any SharedCache)? = nil,
    files: BlockingThreads = BlockingThreads(name: "pictor-file"),
    log: Log = .silent,
    now: @escaping @Sendable () -> UnixTime = { .now }
  ) {
    let imaging = ImagingPolicy(imaging)
    let validity = EntryValidity(purges: purges)
    let sweep = MemorySweep(memory: memory, purges: purges, validity: validity)
    let cache = VariantCache(
      memory: memory, sweep: sweep, disk: disk, validity: validity, imaging: imaging, fleet: fleet)
    let failures = NegativeCache(settings: failures, purges: purges, now: now)
    let staleness = Staleness(settings: stale, now: now)
    let counters = FreshnessCounters()
    parts = ManagerParts(
      memory: memory, disk: disk, loader: loader, processor: processor, purges: purges,
      fleet: fleet, storage: storage,
      files: FileReader(threads: files, storage: storage, log: log), imaging: imaging, now: now,
      validity: validity, sweep: sweep, cache: cache,
      store: SourceStore(disk: disk, variants: cache, validity: validity), failures: failures,
      freshness: FreshnessEvaluator(policy: freshnessPolicy, now: now), staleness: staleness,
      revalidator: Revalidator(staleness: staleness, failures: failures, counters: counters),
      clock: ClockMonitor(counters: counters, log: log, now: now),
      requests: RenderRequests(imaging: imaging))
    sources = SourceService(parts)
    deferredAVIF = DeferredAVIF(parts, workers: workers)
    recompressor = Recompressor(parts)
  }

  /// Applies other times of failures and of the back-off to failures from now on, and the settings
  /// of images. The number of remembered failures stays.
  public func apply(
    _ failures: FailureSettings, _ stale: FreshnessSettings, _ imaging: ImagingSettings
  ) {
    parts.failures.apply(failures)
    parts.staleness.apply(stale)
    parts.imaging.settings.withLock { $0 = imaging }
  }

  // MARK: Figures

  /// The number of detached flights that run without waiters.
  public var unattendedCount: Int { flights.unattendedCount + sources.flights.unattendedCount }

  /// The current flights, and counts since the start.
  public var figures: Figures {
    var figures = Figures(of: parts.substitutions)
    flights.add(to: &figures, kind: "variant")
    figures.add(
      "avifs_waiting", deferredAVIF.waiting, "pictor_deferred_avifs_waiting",
      "AVIFs queued or encoded in the background now.")
    sources.flights.add(to: &figures, kind: "source")
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
    flights.cancelAll(.revoked) + sources.flights.cancelAll(.revoked)
  }
}

/// The collaborators of a manager. Its services share them.
struct ManagerParts: Sendable {
  let memory: any MemoryCache
  let disk: any DiskCache
  let loader: any ImageLoader
  let processor: any ImageProcessor
  let purges: any PurgeList
  let fleet: (any SharedCache)?
  let storage: VariantStorage
  let files: FileReader
  let imaging: ImagingPolicy
  let now: @Sendable () -> UnixTime

  let validity: EntryValidity
  let sweep: MemorySweep
  let cache: VariantCache
  let store: SourceStore
  let failures: NegativeCache
  let freshness: FreshnessEvaluator
  let staleness: Staleness
  let revalidator: Revalidator
  let clock: ClockMonitor
  let requests: RenderRequests
  let candidates = Lock(DerivationCandidates())
  let substitutions = SubstitutionCounters()
}

/// The settings `imaging.…` for the manager's decisions. All copies share them, so that a reload
/// reaches them.
struct ImagingPolicy: Sendable {
  let settings: Lock<ImagingSettings>

  init(_ settings: ImagingSettings = ImagingSettings()) { self.settings = Lock(settings) }
}
