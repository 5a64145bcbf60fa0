// DiskTier: sources and variants on disk, below a limit in bytes, kept across restarts.

import Model
import Platform
import Telemetry

/// Sources and variants on disk. Whatever goes wrong there is a miss and a figure, never an error of a request.
///
/// - What is stored is read back at once from memory, and is on disk soon after.
/// - A look-up of what is not there costs no system call, once the index is made; that happens in the background, and
///   look-ups before it ask the disk.
/// - The limits are exact: room is promised before a write, in the bytes that `du` counts and in files. Sources and
///   variants have a share each, and neither takes from the other.
public final class DiskTier: DiskCache {
  /// `nil` when the tier is off.
  let parts: DiskEngine?
  private let purges: Purges

  /// Opens the folder, creating it where absent, and begins to index it. Nothing to be kept (`path` is `nil`, or
  /// `limit` is 0) makes a tier that is off: it finds nothing and keeps nothing.
  ///
  /// - Parameter purges: the list that the tier carries out; those that an earlier run left over join it.
  /// - Throws: `DiskTierError` when the folder cannot be used.
  public init(
    _ configuration: DiskTierConfiguration, purges: Purges = Purges(), log: Log,
    clock: @escaping @Sendable () -> UnixTime = { .now }
  ) throws(DiskTierError) {
    self.purges = purges
    guard let path = configuration.path, configuration.limit > 0 else {
      parts = nil
      return
    }
    let store = DiskStore(
      folder: try DiskFolder(path: path), configuration: configuration, purges: purges, log: log,
      clock: clock)
    // Before anybody writes there: at most a file for each thread.
    store.folder.removeLeftovers()
    let sweeper = try Self.sweeper(for: store, configuration)
    let workers = try DiskWorkers(
      threads: configuration.threads, readLimit: configuration.readQueueLimit)
    let maintenance = DiskMaintenance(store: store, configuration: configuration)
    store.onShortage.withLock { $0 = { [weak maintenance] in maintenance?.requestClean() } }
    store.onHeal.withLock { $0 = { [weak maintenance] in maintenance?.requestVerification() } }
    try sweeper.start()
    do {
      try maintenance.start { [weak workers, weak sweeper] in
        workers?.allowWrites()
        sweeper?.begin()
      }
    } catch {
      sweeper.stop()
      throw error
    }
    parts = DiskEngine(
      store: store, workers: workers, maintenance: maintenance, sweeper: sweeper,
      reads: PendingReads(timeout: configuration.readTimeout))
  }

  deinit {
    parts?.maintenance.stop()
    parts?.sweeper.stop()
    parts?.reads.end()
  }

  /// Takes in what an earlier run left over of purges, before anything is served.
  private static func sweeper(
    for store: DiskStore, _ configuration: DiskTierConfiguration
  ) throws(DiskTierError) -> DiskSweeper {
    do throws(SystemError) {
      let notes = try store.readJournal()
      store.purges.restore(notes.purges, last: notes.last)
      if let cleared = notes.cleared { store.index.hideFound(until: cleared) }
      return DiskSweeper(
        store: store, cleared: notes.cleared, interval: configuration.cleanInterval)
    } catch {
      throw .unusable(
        path: store.folder.path, reason: "its list of purges cannot be read: \(error.description)")
    }
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
      parts.remove(.variants(of: source)) { _ in continuation.resume() }
    }
  }

  /// See `DiskCache`. What a purge in the list means is not found any more either way.
  ///
  /// - One URL's entries are found by their names: their files are gone when this returns.
  /// - Everything is hidden at once, and what a load brought that began in these moments with it. The files go in the
  ///   background. Until the index is complete nobody knows how many.
  /// - For a prefix, a host or a tag all files are looked through in the background.
  ///
  /// What is not done when this returns is in the folder's list of purges and goes on at the next start.
  public func purge(_ purge: Purge) async throws(ImageError) -> Int? {
    guard let parts else {
      purges.finish(purge)
      return 0
    }
    switch purge.scope {
    case .url(let url): return try await parts.purge(purge, of: url)
    case .everything:
      let answer = try await parts.sweeper.perform(.everything(purge)).written()
      return answer.isCountKnown ? answer.count : nil
    case .prefix, .host, .tag:
      _ = try await parts.sweeper.perform(.writeDown).written()
      return nil
    }
  }

  /// See `DiskCache`. What is stored while this runs may go too; what is stored afterwards is kept, whenever its loading
  /// began. Files are removed in the background, after a restart too.
  @discardableResult public func clear() async throws(ImageError) -> Int {
    guard let parts else { return 0 }
    return try await parts.sweeper.perform(.clear).written().count
  }

  /// See `DiskCache`. The body is not looked at.
  public func look(for key: CacheKey) async -> CacheEntryInfo? { await parts?.look(key) }

  /// See `DiskCache`.
  @discardableResult public func clean() async -> CleanReport {
    await parts?.maintenance.clean() ?? CleanReport()
  }

  /// Writes what is waiting, for at most so long, and ends the tier's threads. Everything is a miss afterwards.
  ///
  /// - Returns: whether all that was waiting got written.
  @discardableResult
  public func shutDown(within limit: Duration) async -> Bool {
    guard let parts else { return true }
    return await withCheckedContinuation { continuation in
      let finish: @Sendable () -> Void = { continuation.resume(returning: parts.shutDown(limit)) }
      do {
        try OwnThread.start(name: "pictor-end", rank: .work, finish)
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
    let space = parts.store.space
    let (variants, sources) = (ShareFigures(space[.variant]), ShareFigures(space[.source]))
    figures.entries = variants.entries + sources.entries
    figures.bytes = space.bytes
    figures.limit = space.limit
    (figures.variants, figures.sources) = (variants, sources)
    figures.purgesPending = purges.unfinishedCount + (parts.sweeper.isClearing ? 1 : 0)
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
