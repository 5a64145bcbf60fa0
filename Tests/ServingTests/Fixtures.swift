// Fixtures: a scripted image provider, and a real server in front of it.

@testable import Core
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Serving

/// An `ImageProvider` for tests: a table for memory, and a closure for misses.
final class TestProvider: ImageProvider {
  typealias Work = @Sendable (ImageRequest) async throws(ImageError) -> ImageDelivery

  private let memory = Lock<[CacheKey: Variant]>([:])
  private let work: Work
  /// Deliveries that are available without blocking, though not from memory.
  let atHand = Lock<[CacheKey: ImageDelivery]>([:])
  /// The number of calls of `variant(for:)`.
  let asked = Counter()
  /// The requests of these calls, in order.
  let requests = Lock<[ImageRequest]>([])

  init(work: @escaping Work = { _ throws(ImageError) in throw .sourceNotFound(status: 404) }) {
    self.work = work
  }

  /// Creates a provider that makes every image, with this body or that of `makeVariant`.
  static func making(_ body: [UInt8]? = nil) -> TestProvider {
    TestProvider { request throws(ImageError) in
      makeDelivery(body.map { makeVariant(request.key, body: $0) } ?? makeVariant(request.key))
    }
  }

  func keep(_ variant: Variant) { memory.withLock { $0[variant.key] = variant } }

  func cachedVariant(for key: CacheKey) -> Variant? { memory.withLock { $0[key] } }

  func deliveryAtOnce(for request: ImageRequest) -> ImageDelivery? {
    atHand.withLock { $0[request.key] }
  }

  func variant(for request: ImageRequest) async throws(ImageError) -> ImageDelivery {
    asked.add()
    requests.withLock { $0.append(request) }
    return try await work(request)
  }
}

/// Admin services for tests: they list what a test provides and count calls.
final class TestServices: ManagerOperations, CacheOperations, DownloadOperations,
  PrefetchOperations, RequestExplainer, SourceDoctor
{
  /// The requests whose sources were diagnosed, in order, and the answer to all of them.
  let diagnosed = Lock<[ImageRequest]>([])
  let diagnosis = Lock(Result<Diagnosis, ImageError>.success(Diagnosis(of: "")))

  func diagnose(_ request: ImageRequest) async throws(ImageError) -> Diagnosis {
    diagnosed.withLock { $0.append(request) }
    return try diagnosis.withLock { $0 }.get()
  }

  /// The requests that were explained, in order, and the answer to all of them.
  let explained = Lock<[ImageRequest]>([])
  let explanation = Lock(Explanation())

  func explain(_ request: ImageRequest) async -> Explanation {
    explained.withLock { $0.append(request) }
    return explanation.withLock { $0 }
  }

  /// The listed failures.
  let failed = Lock<[FailedURL]>([])
  /// The number of calls of `cancelAll`.
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

  /// The purged scopes, in order.
  let purged = Lock<[PurgeScope]>([])
  /// The report of every purge and clear.
  let removed = Lock(PurgeReport())
  /// The cleared tiers, in order.
  let cleared = Lock<[StoreTiers]>([])
  /// The result of every look-up.
  let kept = Lock(CacheLookup())
  /// The requests that were looked up, in order.
  let looked = Lock<[ImageRequest]>([])
  /// The uploads, in order.
  let put = Lock<[(url: SourceURL, bytes: [UInt8], origin: OriginResponse)]>([])
  /// The failure of further uploads.
  let putFailure = Lock<ImageError?>(nil)

  func purge(_ scope: PurgeScope) async throws(ImageError) -> PurgeReport {
    purged.withLock { $0.append(scope) }
    return removed.withLock { $0 }
  }

  /// The tiers that entries were removed from alone, in order.
  let tiers = Lock<[CacheTier]>([])

  func remove(
    _ scope: PurgeScope, from tier: CacheTier, filter: CacheKeyFilter
  ) async throws(ImageError) -> PurgeReport {
    if tier != .all { tiers.withLock { $0.append(tier) } }
    return try await purge(scope)
  }

  func clear(_ tiers: StoreTiers) async throws(ImageError) -> PurgeReport {
    cleared.withLock { $0.append(tiers) }
    return removed.withLock { $0 }
  }

  func clean() async -> CleanReport {
    var report = CleanReport()
    report.expired = 4
    report.evicted = 5
    return report
  }

  func look(for request: ImageRequest) async -> CacheLookup {
    looked.withLock { $0.append(request) }
    return kept.withLock { $0 }
  }

  func put(
    _ url: SourceURL, file: FileRegion, origin: OriginResponse
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

  /// The listed downloads.
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
  /// Notifies all observers of downloads.
  func report(_ status: DownloadStatus) { downloadObservers.tell(status) }
  /// The number of observers.
  var observerCount: Int { downloadObservers.count + prefetchObservers.count }

  // MARK: Prefetches

  /// The started lists, by id.
  let lists = Lock<[String: [PrefetchLine]]>([:])
  /// The status of each list, by id.
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
    _ id: String, observer: @escaping @Sendable (PrefetchStatus) -> Void
  ) -> Observation? {
    prefetchStatus(id) == nil ? nil : prefetchObservers.add(observer)
  }
  /// Notifies all observers of prefetches.
  func report(_ status: PrefetchStatus) {
    statuses.withLock { $0[status.id] = status }
    prefetchObservers.tell(status)
  }
}

extension AdminServices {
  /// Uses one test double for all services.
  init(_ services: TestServices) {
    self.init(
      manager: services, cache: services, downloads: services, prefetcher: services,
      explainer: services, doctor: services)
  }
}

/// The URL of every test image, and its target.
let imageURL = "https://example.org/a/photo.png"
let imageTarget = "/image?url=https%3A%2F%2Fexample.org%2Fa%2Fphoto.png"

func makeRequest(_ url: String = imageURL) throws -> ImageRequest {
  ImageRequest(source: try SourceURL(parsing: url), transform: Transform())
}

func makeInfo(
  _ format: ImageFormat = .jpeg, lifetime: Int = 3_600, receivedAgo: Int = 0,
  isStorable: Bool = true
) -> VariantInfo {
  VariantInfo(
    .image(RenderedImage(format: format, size: PixelSize(width: 4, height: 3), density: 2)),
    etag: "\"0123abcd\"",
    lastModified: UnixTime(seconds: 784_111_777),
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

func makeStats(_ figures: Figures, isDraining: Bool) -> Figures {
  var stats = Figures()
  stats.add("status", Figure.text(isDraining ? "draining" : "serving"))
  stats.add(nil, isDraining, "pictor_draining", "Whether the server stops.")
  stats.add("requests", figures)
  return stats
}

/// Starts a server on a free port and stops it after the test, unless the test has stopped it.
func withServer<Result>(
  _ provider: any ImageProvider = TestProvider(), services: TestServices = TestServices(),
  log: Log = Log(level: .error), configure: (inout ServerConfiguration) -> Void = { _ in },
  stats: @escaping @Sendable (Figures, Bool) -> Figures = makeStats,
  body: (Server) async throws -> Result
) async throws -> Result {
  try await withTaskExecutorPreference(BlockingExecutor.shared) {
    try await withRunningServer(
      provider, services: services, stats: stats, log: log, configure: configure, body: body)
  }
}

extension ServerConfiguration {
  /// The tokens of operators, `token1` and so on, who may do everything.
  var operatorTokens: [String] {
    get { operators.map(\.token) }
    set {
      operators = newValue.enumerated().map { Operator(name: "token\($0 + 1)", token: $1) }
    }
  }
}

/// Runs a server as `withServer` does, for one connection to it.
func withClient<Result>(
  _ provider: any ImageProvider = TestProvider(), services: TestServices = TestServices(),
  log: Log = Log(level: .error), configure: (inout ServerConfiguration) -> Void = { _ in },
  body: (HTTPClient) async throws -> Result
) async throws -> Result {
  try await withServer(provider, services: services, log: log, configure: configure) { server in
    try await body(try HTTPClient(port: server.port))
  }
}

extension Server {
  /// Connects a client that sends a request, and whose answer is not read yet.
  func ask(
    _ target: String = imageTarget, headers: KeyValuePairs<String, String> = [:]
  ) throws -> HTTPClient {
    let client = try HTTPClient(port: port)
    try client.send(HTTPClient.text("GET", target: target, headers: headers))
    return client
  }
}

/// The token of the operator of `withOperators`, and the header with it.
let operatorToken = "correct-horse-battery"
let operatorHeader: KeyValuePairs = ["Authorization": "Bearer " + operatorToken]

/// Runs a server with one operator, for a client and the header with the operator's token.
func withOperators(
  _ services: TestServices = TestServices(), provider: TestProvider = TestProvider(),
  configure: (inout ServerConfiguration) -> Void = { _ in },
  body: (HTTPClient, KeyValuePairs<String, String>) async throws -> Void
) async throws {
  try await withClient(provider, services: services) {
    $0.operatorTokens = [operatorToken]
    configure(&$0)
  } body: {
    try await body($0, operatorHeader)
  }
}

extension Endpoint {
  /// A path that leads to the endpoint.
  var samplePath: String {
    switch path {
    case .exact(let path): path
    case .item(let parent): parent + "x"
    }
  }
}

extension HTTPClient {
  /// Sends a request whose body does not arrive, and waits until the server has read its head.
  func occupy(after header: [UInt8] = []) throws {
    try send(
      bytes: header
        + Array("POST /image HTTP/1.1\r\nHost: t\r\nContent-Length: 9\r\n".utf8)
        + Array("Expect: 100-continue\r\n\r\n".utf8))
    try expectContinue()
  }

  /// Reads the answer to `Expect: 100-continue`.
  func expectContinue() throws {
    let expected = "HTTP/1.1 100 Continue\r\n\r\n"
    #expect(try read(expected.utf8.count) == Array(expected.utf8))
  }
}

/// Returns the bytes in a queue of a port's sockets, from `/proc/net/tcp` (proc(5)): 0, unsent and
/// unacknowledged ones, or 1, unread ones and connections that are not accepted.
func queuedBytes(_ queue: Int, atPort port: Int) -> Int {
  let lines = ControlGroups.text("/proc/net/tcp")?.split(separator: "\n") ?? []
  return lines.reduce(0) { sum, line in
    let words = line.split(separator: " ")
    guard words.count > 4, let local = words[1].split(separator: ":").last,
      Int(local, radix: 16) == port
    else { return sum }
    let queues = words[4].split(separator: ":")
    return sum + (queues.count == 2 ? Int(queues[queue], radix: 16) ?? 0 : 0)
  }
}

private func withRunningServer<Result>(
  _ provider: any ImageProvider, services: TestServices,
  stats: @escaping @Sendable (Figures, Bool) -> Figures, log: Log,
  configure: (inout ServerConfiguration) -> Void,
  body: (Server) async throws -> Result
) async throws -> Result {
  var configuration = ServerConfiguration()
  configuration.port = 0
  configuration.graceTime = .milliseconds(50)
  configuration.statsLifetime = .zero
  configure(&configuration)
  let server = Server(
    configuration: configuration, provider: provider, services: AdminServices(services),
    stats: stats, log: log)
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
