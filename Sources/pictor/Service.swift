// Service: creates and connects the parts of a server, starts and stops them, and composes
// `/stats`.

import Caching
import Core
import Dispatch
import Downloading
import Glibc
import ImagingPool
import Managing
import Serving
import Sharing
import Tracing

final class Service: Sendable {
  private let memory: MemoryTier
  private let warnings: MemoryWarnings
  private let disk: DiskTier
  private let downloader: Downloader
  private let imagers: ImagerPool
  private let manager: ImageManager
  private let prefetcher: Prefetcher
  private let server: Server
  private let freshness: FreshnessRules
  private let purges: Purges
  private let sources: SourceLoader
  private let exporter: SpanExporter?
  private let fleet: Fleet?

  /// Creates the parts with their threads and files. No connection is accepted yet.
  init(_ configurations: PartConfigurations, log: Log) throws {
    var configurations = configurations
    let exporter = try configurations.exporter.map { try SpanExporter($0, log: log) }
    configurations.server.spans = exporter
    configurations.downloader.spans = exporter
    let memory = MemoryTier(configurations.memory)
    let warnings = MemoryWarnings(for: memory, configurations.memory, log: log)
    let bodies = ByteBudget(limit: configurations.downloader.maximumBytesInFlight)
    let images = ByteBudget(
      limit: configurations.memory.limit + configurations.memory.responseLimit)
    let purges = Purges(filter: configurations.server.keyFilter)
    let disk = try DiskTier(configurations.disk, purges: purges, memory: images, log: log)
    let longest = configurations.freshness.longestLifetime
    // After the disk tier, which makes the folder.
    let fleet = try configurations.fleet.map {
      try Fleet(
        $0, coding: StoredVariantCoding(memory: images, longestLifetime: longest),
        bodies: bodies, log: log)
    }
    let storage = VariantStorage(
      memory: images, files: disk.makeUnlinkedFiles(),
      maximumInMemory: max(configurations.memory.largestVariant, VariantStorage.alwaysInMemory))
    let downloader = try Downloader(
      configuration: configurations.downloader, bodies: bodies, log: log)
    let imagers = ImagerPool(configuration: configurations.imagers, storage: storage, log: log)
    let freshness = FreshnessRules(configurations.freshness)
    let sources = SourceLoader(remote: downloader, local: configurations.local)
    let manager = ImageManager(
      memory: memory, disk: disk,
      loader: sources, processor: imagers,
      freshnessPolicy: freshness, purges: purges,
      failures: configurations.keys.failures, stale: configurations.keys.freshness,
      imaging: configurations.keys.imaging, workers: configurations.imagers.workers,
      storage: storage, fleet: fleet, log: log)
    let prefetcher = Prefetcher(provider: manager, settings: configurations.keys.prefetch)
    let start = ContinuousClock.now
    server = Server(
      configuration: configurations.server, provider: manager,
      services: AdminServices(
        manager: manager, cache: manager, downloads: downloader, prefetcher: prefetcher,
        explainer: manager, doctor: manager, bodies: bodies),
      stats: { requests, isDraining in
        var stats = Figures()
        stats.add("status", Figure.text(isDraining ? "draining" : "serving"))
        stats.add(
          nil, isDraining, "pictor_draining", "Whether the server stops: 1, else 0.")
        stats.add("version", Figure.text(pictorVersion))
        stats.add(
          nil, 1, "pictor_build_info", "The version of the program; always 1.",
          ["version": pictorVersion])
        stats.add(
          "uptime_seconds", (ContinuousClock.now - start).inSeconds, "pictor_uptime_seconds",
          "Time since the start.")
        stats.add("requests", requests)
        var memoryFigures = memory.figures
        if let pressure = warnings.figures { memoryFigures.add("pressure", pressure) }
        stats.add("memory", memoryFigures)
        stats.add("disk", disk.figures)
        var budgets = Figures()
        budgets.add("bodies", Figures(bodies, named: "bodies"))
        budgets.add("variants", Figures(images, named: "variants"))
        budgets.add("jobs", imagers.memoryFigures)
        if let files = storage.files {
          budgets.add("files", Figures(files.budget, named: "files"))
        }
        stats.add("budgets", budgets)
        stats.add("downloads", downloader.figures)
        stats.add("flights", manager.figures)
        stats.add("freshness", manager.freshnessFigures)
        stats.add("recompression", manager.recompressionFigures)
        stats.add("prefetch", prefetcher.figures)
        stats.add("imaging", imagers.figures)
        stats.add("process", Figures.process)
        stats.add("log", log.figures)
        if let exporter { stats.add("tracing", exporter.figures) }
        if let fleet { stats.add("fleet", fleet.figures) }
        return stats
      }, log: log)
    imagers.reserveCores(
      loopTime: { [weak server] in server?.loopTime ?? .zero },
      confineLoops: { [weak server] cores throws(SystemError) in
        try server?.confineLoops(to: cores)
      })
    self.freshness = freshness
    self.purges = purges
    self.sources = sources
    self.exporter = exporter
    self.fleet = fleet
    self.memory = memory
    self.warnings = warnings
    self.disk = disk
    downloader.refuse(
      own: configurations.server.clientAddresses + configurations.server.operatorAddresses)
    self.downloader = downloader
    self.imagers = imagers
    self.manager = manager
    self.prefetcher = prefetcher
  }

  /// Starts the imaging workers, then listens.
  func start() throws {
    try warnings.start()
    try imagers.start()
    fleet?.start(
      recording: { [manager] () throws(ImageError) in try await manager.recordPurges() },
      applying: { [manager] scope throws(ImageError) in try await manager.applyPurge(scope) })
    try server.start()
    // Only now is it known which port any free one was.
    downloader.refuse(own: server.addresses)
  }

  /// Reports at `/stats` that the server is about to stop. Requests are still served.
  func announceStop() { server.announceStop() }

  /// Returns whether event loops and Swift's pool work within `time`. Blocks the thread.
  func responds(within time: Duration) -> Bool {
    let end = ContinuousClock.now + time
    let hasRun = DispatchSemaphore(value: 0)
    Task { hasRun.signal() }
    guard server.responds(within: time) else { return false }
    let rest = max(end - .now, .zero)
    return hasRun.wait(timeout: .now() + rest.inSeconds) == .success
  }

  /// Applies the keys that are read for each request and load. What the others decided stays.
  func apply(_ configurations: PartConfigurations) {
    freshness.apply(configurations.freshness)
    purges.apply(configurations.server.keyFilter)
    fleet?.apply(configurations.server.keyFilter)
    imagers.apply(configurations.imagers)
    let keys = configurations.keys
    manager.apply(keys.failures, keys.freshness, keys.imaging)
    prefetcher.apply(keys.prefetch)
    sources.apply(configurations.local)
    downloader.apply(configurations.downloader)
    server.apply(configurations.server)
  }

  /// Stops the parts in the order of a request's path: connections, running work, pending disk
  /// writes. Blocks, so it must be called on the main thread.
  func stop() {
    waiting { [self] in
      // First: background work must not delay requests, and clients that watch a prefetch must see
      // its end.
      prefetcher.shutDown()
      await server.stop()
      warnings.stop()
      downloader.shutDown()
      await imagers.shutDown(within: .seconds(1))
      await fleet?.stop()
      await disk.shutDown(within: .seconds(5))
    }
    // Last, with the spans of the requests that ended just now.
    exporter?.stop(within: .seconds(2))
  }
}

/// Runs a task and returns its value. Blocks: for the program's first thread.
func waiting<Value: Sendable>(for task: @escaping @Sendable () async -> Value) -> Value {
  let value = Lock<Value?>(nil)
  let isDone = DispatchSemaphore(value: 0)
  Task {
    let result = await task()
    value.withLock { $0 = result }
    isDone.signal()
  }
  isDone.wait()
  guard let value = value.withLock({ $0 }) else { preconditionFailure("a task without a value") }
  return value
}
