// DiskTier: sources and variants on disk, below a limit in bytes, kept across restarts.

import Model
import Platform
import Telemetry

/// Sources and variants on disk. Whatever goes wrong there is a miss and a figure, never an error of a request.
///
/// - What is stored is read back at once from memory, and is on disk soon after.
/// - A look-up of what is not there costs no system call, once the index is made; that happens in the background, and
///   look-ups before it ask the disk.
/// - The limit is exact: room is promised before a write, in the bytes that `du` counts.
public final class DiskTier: DiskCache {
  /// `nil` when the tier is off.
  let parts: DiskParts?

  /// Opens the folder, creating it where absent, and begins to index it. Nothing to be kept (`path` is `nil`, or
  /// `limit` is 0) makes a tier that is off: it finds nothing and keeps nothing.
  ///
  /// - Throws: `DiskTierError` when the folder cannot be used.
  public init(
    _ configuration: DiskTierConfiguration, log: Log,
    clock: @escaping @Sendable () -> UnixTime = { .now }
  ) throws(DiskTierError) {
    guard let path = configuration.path, configuration.limit > 0 else {
      parts = nil
      return
    }
    let store = DiskStore(
      folder: try DiskFolder(path: path), configuration: configuration, log: log, clock: clock)
    let workers = try DiskWorkers(
      threads: configuration.threads, readLimit: configuration.readQueueLimit)
    let maintenance = DiskMaintenance(store: store, configuration: configuration)
    store.onShortage.withLock { $0 = { [weak maintenance] in maintenance?.requestClean() } }
    store.onHeal.withLock { $0 = { [weak maintenance] in maintenance?.requestVerification() } }
    try maintenance.start { [weak workers] in workers?.allowWrites() }
    parts = DiskParts(
      store: store, workers: workers, maintenance: maintenance,
      reads: PendingReads(timeout: configuration.readTimeout))
  }

  deinit {
    parts?.maintenance.stop()
    parts?.reads.end()
  }

  /// See `DiskCache`.
  public func variant(for key: CacheKey) async -> Variant? {
    guard !key.isSource, case .variant(let variant) = await entry(for: key) else { return nil }
    return variant
  }

  /// See `DiskCache`. Only what is found is counted: whoever finds nothing here looks once more, and waits.
  public func variantAtOnce(
    for key: CacheKey, where isWanted: (VariantInfo) -> Bool
  ) -> Variant? {
    guard let parts, !key.isSource else { return nil }
    let start = ContinuousClock.now
    guard let variant = parts.findAtOnce(key, where: isWanted) else { return nil }
    parts.store.counts.hits.add()
    parts.store.counts.latency.record(start.duration(to: .now))
    return variant
  }

  /// See `DiskCache`.
  public func source(for key: CacheKey) async -> Source? {
    guard key.isSource, case .source(let source) = await entry(for: key) else { return nil }
    return source
  }

  /// See `DiskCache`. Dropped and counted as a failure where too much is waiting to be written.
  @discardableResult public func store(_ variant: Variant) -> Bool {
    !variant.key.isSource && store(.variant(variant))
  }

  /// See `DiskCache`. Dropped and counted as a failure where too much is waiting to be written.
  @discardableResult public func store(_ source: Source) -> Bool {
    source.key.isSource && store(.source(source))
  }

  /// See `DiskCache`. No look-up that begins afterwards finds it; something stored afterwards is kept. Returns when the
  /// file is gone.
  public func remove(_ key: CacheKey) async {
    guard let parts else { return }
    await withCheckedContinuation { continuation in
      parts.removeEntry(key) { continuation.resume() }
    }
  }

  /// See `DiskCache`. What is stored while this runs may go too; what is stored afterwards is kept. Returns when the
  /// files are gone.
  public func removeVariants(of source: CacheKey) async {
    guard let parts, source.isSource else { return }
    await withCheckedContinuation { continuation in
      parts.removeVariants(of: source) { continuation.resume() }
    }
  }

  /// Removes what is too old and, where the tier is nearly full, what was least recently used. Returns when done.
  public func clean() async { await parts?.maintenance.clean() }

  /// Writes what is waiting, for at most so long, and ends the tier's threads. Everything is a miss afterwards.
  ///
  /// - Returns: whether all that was waiting got written.
  @discardableResult
  public func shutDown(within limit: Duration) async -> Bool {
    guard let parts else { return true }
    return await withCheckedContinuation { continuation in
      let finish: @Sendable () -> Void = { continuation.resume(returning: parts.shutDown(limit)) }
      do {
        try OwnThread.start(name: "pictor-end", finish)
      } catch {
        // No thread to wait on, so this one waits: the program ends anyway.
        finish()
      }
    }
  }

  /// Whether the index is complete. Writing begins soon after, when the first clean is done.
  public var isIndexed: Bool { parts?.store.index.isComplete ?? true }

  /// The state now, as `/stats` shows it.
  public var figures: TierFigures {
    guard let parts else { return TierFigures() }
    var figures = parts.store.counts.figures
    figures.entries = parts.store.index.count
    figures.bytes = parts.store.space.bytes
    figures.limit = parts.store.space.limit
    return figures
  }

  /// Bytes that wait to be written.
  public var pendingBytes: Int { parts?.store.pending.bytes ?? 0 }

  private func entry(for key: CacheKey) async -> DiskEntry? {
    guard let parts else { return nil }
    let start = ContinuousClock.now
    let entry = await parts.find(key)
    if entry == nil {
      parts.store.counts.misses.add()
    } else {
      parts.store.counts.hits.add()
      parts.store.counts.latency.record(start.duration(to: .now))
    }
    return entry
  }

  private func store(_ entry: DiskEntry) -> Bool { parts?.storeEntry(entry) ?? false }
}
