// ManagerParts: what the parts of the manager work with, created and connected once.

import Core

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
  /// The present settings of images, which the three policies share.
  let imaging: Lock<ImagingSettings>
  let passing: PassingPolicy
  let avif: AVIFPolicy
  let recompression: RecompressionPolicy
  let now: @Sendable () -> UnixTime

  let validity: EntryValidity
  let sweep: MemorySweep
  let cache: VariantCache
  let store: SourceStore
  let failures: NegativeCache
  let freshness: FreshnessEvaluator
  let staleness: Staleness
  let revalidator: Revalidator
  let sources: SourceService
  let requests: RenderRequests
  let candidates = Lock(DerivationCandidates())
  let substitutions = SubstitutionCounters()

  /// Connects the parts. See `ImageManager.init`.
  init(
    memory: any MemoryCache, disk: any DiskCache, loader: any ImageLoader,
    processor: any ImageProcessor, freshnessPolicy: any FreshnessPolicy, purges: any PurgeList,
    failures failureSettings: FailureSettings, backoff: FreshnessSettings,
    imaging: Lock<ImagingSettings>, workers: Int, storage: VariantStorage,
    fleet: (any SharedCache)?, files: BlockingThreads, log: Log,
    now: @escaping @Sendable () -> UnixTime
  ) {
    self.memory = memory
    self.disk = disk
    self.loader = loader
    self.processor = processor
    self.purges = purges
    self.fleet = fleet
    self.storage = storage
    self.files = FileReader(threads: files, storage: storage, log: log)
    self.imaging = imaging
    passing = PassingPolicy(settings: imaging)
    avif = AVIFPolicy(settings: imaging, workers: workers)
    recompression = RecompressionPolicy(settings: imaging)
    self.now = now
    validity = EntryValidity(purges: purges)
    sweep = MemorySweep(memory: memory, purges: purges, validity: validity)
    cache = VariantCache(
      memory: memory, sweep: sweep, disk: disk, validity: validity, recompression: recompression,
      fleet: fleet)
    store = SourceStore(disk: disk, variants: cache, validity: validity)
    failures = NegativeCache(failureSettings, purges: purges, now: now)
    freshness = FreshnessEvaluator(policy: freshnessPolicy, now: now)
    staleness = Staleness(backoff, now: now)
    requests = RenderRequests(policy: recompression)
    let counters = FreshnessCounters()
    revalidator = Revalidator(staleness: staleness, failures: failures, counters: counters)
    sources = SourceService(
      store: store, loader: loader, freshness: freshness,
      failures: failures, staleness: staleness, revalidator: revalidator, validity: validity,
      clock: ClockMonitor(counters: counters, log: log, now: now))
  }
}
