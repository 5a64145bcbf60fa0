// Service: creates and connects the parts of a server, starts and stops them, and composes
// `/stats`.

import Caching
import Dispatch
import Downloading
import Glibc
import ImagingPool
import Managing
import Model
import Serving
import Telemetry

/// A running server.
final class Service: Sendable {
  private let memory: MemoryTier
  private let warnings: MemoryWarnings
  private let disk: DiskTier
  private let downloader: Downloader
  private let imagers: ImagerPool
  private let manager: ImageManager
  private let prefetcher: Prefetcher
  private let server: Server
  private let address: String

  /// Creates the parts with their threads and files. No connection is accepted yet.
  init(_ configurations: PartConfigurations, log: Log) throws {
    let memory = MemoryTier(configurations.memory)
    let warnings = MemoryWarnings(for: memory, configurations.memory, log: log)
    let purges = Purges(filter: configurations.server.keyFilter)
    let disk = try DiskTier(configurations.disk, purges: purges, log: log)
    let downloader = try Downloader(configuration: configurations.downloader, log: log)
    let imagers = ImagerPool(configuration: configurations.imagers, log: log)
    let manager = ImageManager(
      memory: memory, disk: disk,
      loader: SourceLoader(remote: downloader, local: configurations.local), processor: imagers,
      freshnessPolicy: FreshnessRules(configurations.freshness), purges: purges,
      failurePolicy: configurations.failures, stalePolicy: configurations.stale,
      sourceFormats: configurations.imagers.limits.formats,
      passing: configurations.passing, avifPolicy: configurations.avif,
      derives: configurations.derives, log: log)
    let prefetcher = Prefetcher(provider: manager, configuration: configurations.prefetcher)
    let start = ContinuousClock.now
    server = Server(
      configuration: configurations.server, provider: manager,
      services: AdminServices(
        manager: manager, cache: manager, downloads: downloader, prefetcher: prefetcher),
      stats: { requests, isDraining in
        var memoryFigures = memory.figures
        memoryFigures.pressure = warnings.figures
        return Stats(
          status: isDraining ? "draining" : "serving", version: pictorVersion,
          uptimeSeconds: (ContinuousClock.now - start).inSeconds, requests: requests,
          memory: memoryFigures, disk: disk.figures, downloads: downloader.figures,
          flights: manager.figures, freshness: manager.freshnessFigures,
          prefetch: prefetcher.figures, imaging: imagers.figures,
          process: .now, log: log.figures)
      }, log: log)
    (self.memory, self.warnings, self.disk) = (memory, warnings, disk)
    address = configurations.server.address
    downloader.refuse(ownAddress: address, port: configurations.server.port)
    self.downloader = downloader
    (self.imagers, self.manager, self.prefetcher) = (imagers, manager, prefetcher)
  }

  /// Starts the imaging workers, then listens.
  func start() throws {
    try warnings.start()
    try imagers.start()
    try server.start()
    // Only now is it known which port any free one was.
    downloader.refuse(ownAddress: address, port: server.port)
  }

  /// Reports at `/stats` that the server is about to stop. Requests are still served.
  func announceStop() { server.announceStop() }

  /// Replaces the tokens for `/admin`.
  func setOperatorTokens(_ tokens: [String]) { server.setOperatorTokens(tokens) }

  /// Stops the parts in the order of a request's path: connections, running work, pending disk
  /// writes. Blocks, so it must be called on the main thread.
  func stop() {
    let isDone = DispatchSemaphore(value: 0)
    Task {
      // First: background work must not delay requests, and clients that watch a prefetch must see
      // its end.
      prefetcher.shutDown()
      await server.stop()
      warnings.stop()
      downloader.shutDown()
      await imagers.shutDown(within: .seconds(1))
      await disk.shutDown(within: .seconds(5))
      isDone.signal()
    }
    isDone.wait()
  }
}
