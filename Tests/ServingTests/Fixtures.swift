// Fixtures: a scripted image provider, and a real server in front of it.

import Glibc
import Model
import Platform
import Synchronization
import Telemetry
import TestSupport

@testable import Serving

/// An `ImageProvider` for tests: memory is a table, and the way past it a closure.
final class TestProvider: ImageProvider {
  typealias Work = @Sendable (ImageRequest) async throws(ImageError) -> ImageDelivery

  private let memory = Lock<[CacheKey: Variant]>([:])
  private let work: Work
  /// What can be had without waiting, though not from memory.
  let atHand = Lock<[CacheKey: ImageDelivery]>([:])
  /// Calls of `variant(for:)`.
  let asked = Counter()

  init(work: @escaping Work = { _ throws(ImageError) in throw .sourceNotFound(status: 404) }) {
    self.work = work
  }

  func keep(_ variant: Variant) { memory.withLock { $0[variant.key] = variant } }

  func cachedVariant(for key: CacheKey) -> Variant? { memory.withLock { $0[key] } }

  func deliveryAtOnce(for request: ImageRequest) -> ImageDelivery? {
    atHand.withLock { $0[request.key] }
  }

  func variant(for request: ImageRequest) async throws(ImageError) -> ImageDelivery {
    asked.add()
    return try await work(request)
  }
}

/// Admin services for tests: they list what a test provides, and count calls.
final class TestServices: ManagerOperations, CacheOperations, DownloadOperations,
  PrefetchOperations
{
  /// What is listed.
  let failed = Lock<[FailedURL]>([])
  /// Calls of `cancelAll`.
  let cancelled = Counter()

  func failedURLs() -> [FailedURL] { failed.withLock { $0 } }

  func removeFailedURLs(_ url: SourceURL?) -> Int {
    failed.withLock { failed in
      let count = failed.count
      failed.removeAll { url == nil || $0.url == url?.text }
      return count - failed.count
    }
  }

  func cancelAll() -> Int {
    cancelled.add()
    return 3
  }

  // MARK: Cache

  /// What was purged, in order.
  let purged = Lock<[PurgeScope]>([])
  /// What every purge and clear removes.
  let removed = Lock(PurgeReport())
  /// What was cleared, in order.
  let cleared = Lock<[StoreTiers]>([])
  /// Where everything is.
  let kept = Lock(CacheLookup())
  /// What was looked for, in order.
  let looked = Lock<[ImageRequest]>([])
  /// What was put, in order.
  let put = Lock<[(url: SourceURL, bytes: [UInt8], origin: OriginResponse)]>([])
  /// What further images are refused with.
  let putFailure = Lock<ImageError?>(nil)

  func purge(_ scope: PurgeScope) async throws(ImageError) -> PurgeReport {
    purged.withLock { $0.append(scope) }
    return removed.withLock { $0 }
  }

  func clear(_ tiers: StoreTiers) async throws(ImageError) -> PurgeReport {
    cleared.withLock { $0.append(tiers) }
    return removed.withLock { $0 }
  }

  func clean() async -> CleanReport {
    var report = CleanReport()
    (report.expired, report.evicted) = (4, 5)
    return report
  }

  func look(for request: ImageRequest) async -> CacheLookup {
    looked.withLock { $0.append(request) }
    return kept.withLock { $0 }
  }

  func put(
    _ url: SourceURL, _ file: FileRegion, _ origin: OriginResponse
  ) async throws(ImageError) -> PurgeReport {
    if let failure = putFailure.withLock({ $0 }) { throw failure }
    guard let body = try? ImageBytes(contentsOf: file) else {
      throw .internal(detail: "the body cannot be read")
    }
    let bytes = body.withUnsafeBytes { Array($0) }
    put.withLock { $0.append((url, bytes, origin)) }
    return removed.withLock { $0 }
  }

  // MARK: Downloads

  /// What is listed.
  let listed = Lock<[DownloadStatus]>([])
  /// Whether downloads are paused.
  let isPaused = Lock(false)
  private let downloadObservers = Observers<DownloadStatus>()

  func pause() { isPaused.withLock { $0 = true } }
  func resume() { isPaused.withLock { $0 = false } }
  func downloads() -> [DownloadStatus] { listed.withLock { $0 } }
  func observeDownloads(_ observer: @escaping @Sendable (DownloadStatus) -> Void) -> Observation {
    downloadObservers.add(observer)
  }
  /// Tells all who observe downloads.
  func report(_ status: DownloadStatus) { downloadObservers.tell(status) }
  /// Who observes.
  var observerCount: Int { downloadObservers.count + prefetchObservers.count }

  // MARK: Prefetches

  /// Lists begun, by name.
  let lists = Lock<[String: [PrefetchLine]]>([:])
  /// What is told of them.
  let statuses = Lock<[String: PrefetchStatus]>([:])
  private let prefetchObservers = Observers<PrefetchStatus>()

  func prefetch(_ lines: [PrefetchLine]) throws(ImageError) -> String {
    let id = lists.withLock { lists in
      let id = "\(lists.count + 1)"
      lists[id] = lines
      return id
    }
    statuses.withLock { $0[id] = PrefetchStatus(id: id, total: lines.count) }
    return id
  }
  func prefetches() -> [PrefetchStatus] {
    statuses.withLock { $0.values.sorted { $0.id < $1.id } }
  }
  func prefetchStatus(_ id: String) -> PrefetchStatus? { statuses.withLock { $0[id] } }
  func cancelPrefetch(_ id: String) -> Bool {
    statuses.withLock { statuses in
      statuses[id]?.state = .cancelled
      return statuses[id] != nil
    }
  }
  func observePrefetch(
    _ id: String, _ observer: @escaping @Sendable (PrefetchStatus) -> Void
  ) -> Observation? {
    prefetchStatus(id) == nil ? nil : prefetchObservers.add(observer)
  }
  /// Tells all who observe prefetches.
  func report(_ status: PrefetchStatus) {
    statuses.withLock { $0[status.id] = status }
    prefetchObservers.tell(status)
  }
}

extension AdminServices {
  /// All of it by one of the tests' own.
  init(_ services: TestServices) {
    self.init(
      manager: services, cache: services, downloads: services, prefetcher: services)
  }
}

/// Lets tasks wait until a test says so.
final class Gate: Sendable {
  private struct State {
    var isOpen = false
    var waiting: [CheckedContinuation<Void, Never>] = []
  }
  private let state = Lock(State())

  func pass() async {
    await withCheckedContinuation { continuation in
      let isOpen = state.withLock { state in
        if !state.isOpen { state.waiting.append(continuation) }
        return state.isOpen
      }
      if isOpen { continuation.resume() }
    }
  }

  func open() {
    let waiting = state.withLock { state in
      state.isOpen = true
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }
}

/// The URL every test image comes from, and its target.
let imageURL = "https://example.org/a/photo.png"
let imageTarget = "/image?url=https%3A%2F%2Fexample.org%2Fa%2Fphoto.png"

func makeRequest(_ url: String = imageURL) throws -> ImageRequest {
  ImageRequest(source: try SourceURL(parsing: url), transform: Transform())
}

func makeInfo(lifetime: Int = 3_600, receivedAgo: Int = 0, isStorable: Bool = true) -> VariantInfo {
  VariantInfo(
    format: .jpeg, size: PixelSize(width: 4, height: 3), density: 2, etag: "\"0123abcd\"",
    lastModified: "Sun, 06 Nov 1994 08:49:37 GMT",
    freshness: Freshness(
      receivedAt: UnixTime(seconds: UnixTime.now.seconds - receivedAgo), lifetime: lifetime,
      isStorable: isStorable))
}

func makeVariant(
  _ key: CacheKey, body: [UInt8] = Array(repeating: 7, count: 18_000),
  info: VariantInfo = makeInfo()
) -> Variant {
  Variant(
    key: key, info: info, body: .memory(body.withUnsafeBytes { ImageBytes(copying: $0) }))
}

func makeDelivery(_ variant: Variant) -> ImageDelivery {
  var timings = Timings()
  timings.download = .milliseconds(12)
  timings.encode = .microseconds(1_500)
  return ImageDelivery(
    variant: variant,
    cacheStatus: .miss(.uriMiss, stored: true, collapsed: false, originStatus: 200),
    timings: timings)
}

func makeStats(_ figures: RequestFigures, _ isDraining: Bool) -> Stats {
  Stats(
    status: isDraining ? "draining" : "serving", version: "1.2.3", uptimeSeconds: 1,
    requests: figures, memory: TierFigures(), disk: TierFigures(), downloads: DownloadFigures(),
    flights: FlightFigures(), freshness: FreshnessFigures(), prefetch: PrefetchFigures(),
    imaging: ImagingFigures(), process: ProcessFigures())
}

/// Starts a server on a free port and stops it behind the test, which may have done so itself.
func withServer<Result>(
  _ provider: any ImageProvider, services: TestServices = TestServices(),
  log: Log = Log(level: .error), configure: (inout ServerConfiguration) -> Void = { _ in },
  _ body: (Server) async throws -> Result
) async throws -> Result {
  try await withTaskExecutorPreference(BlockingExecutor.shared) {
    try await withRunningServer(provider, services, log: log, configure: configure, body)
  }
}

private func withRunningServer<Result>(
  _ provider: any ImageProvider, _ services: TestServices, log: Log,
  configure: (inout ServerConfiguration) -> Void,
  _ body: (Server) async throws -> Result
) async throws -> Result {
  var configuration = ServerConfiguration()
  configuration.port = 0
  configuration.graceTime = .milliseconds(50)
  configure(&configuration)
  let server = Server(
    configuration: configuration, provider: provider, services: AdminServices(services),
    stats: makeStats,
    log: log)
  try server.start()
  do {
    let result = try await body(server)
    await server.stop()
    return result
  } catch {
    await server.stop()
    throw error
  }
}

/// Waits until something becomes true, ten seconds at most.
func eventually(_ condition: () -> Bool) async -> Bool {
  for _ in 0..<2_000 {
    if condition() { return true }
    try? await Task.sleep(for: .milliseconds(5))
  }
  return condition()
}
