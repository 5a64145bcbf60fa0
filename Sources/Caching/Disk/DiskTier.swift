// DiskTier: sources and variants on disk, below a size limit, kept across restarts.

import Model
import Platform
import Telemetry

/// A cache of sources and variants on disk. Disk errors never fail a request: they count as misses
/// and as failures.
///
/// - A stored entry is readable immediately from memory, and on disk soon after.
/// - Once the index is complete, a miss costs no system call. The index is built in the background;
///   until then, look-ups ask the disk.
/// - The limits are exact. Each write first reserves its room, in bytes as `du` counts them and in
///   files.
/// - Sources and variants each have their own share of the limits.
public final class DiskTier: DiskCache {
  /// `nil` if the tier is disabled.
  let parts: DiskEngine?
  private let purges: Purges

  /// Opens the folder, creating it if needed, and starts to index it. The tier is disabled if
  /// `path` is `nil` or `limit` is 0; a disabled tier always misses.
  ///
  /// - Parameter purges: the list of purges to carry out. Unfinished purges of an earlier run are
  ///   added to it.
  /// - Throws: `DiskTierError` if the folder cannot be used.
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
    // Must run before the first write. There is at most one leftover file for each disk thread.
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

  /// Creates the sweeper. Restores the unfinished purges of an earlier run first, before anything
  /// is served.
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

  /// See `DiskCache`. Counts hits only: after a miss the caller looks up again with
  /// `variant(for:)`, which counts it.
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

  /// See `DiskCache`. Drops the variant and counts a failure if the write queue is full.
  @discardableResult public func store(_ variant: Variant) -> Bool {
    !variant.key.isSource && store(.variant(variant))
  }

  /// See `DiskCache`. Drops the source and counts a failure if the write queue is full.
  @discardableResult public func store(_ source: Source) -> Bool {
    source.key.isSource && store(.source(source))
  }

  /// See `DiskCache`. Look-ups that start later miss; entries stored later stay. Returns when the
  /// file is removed.
  public func remove(_ key: CacheKey) async {
    guard let parts else { return }
    await withCheckedContinuation { continuation in
      parts.removeEntry(key) { continuation.resume() }
    }
  }

  /// See `DiskCache`. Variants stored during the call may be removed too; variants stored later
  /// stay. Returns when the files are removed.
  public func removeVariants(of source: CacheKey) async {
    guard let parts, source.isSource else { return }
    await withCheckedContinuation { continuation in
      parts.remove(.variants(of: source)) { _ in continuation.resume() }
    }
  }

  /// See `DiskCache`. The purged entries are already misses, because the list of purges covers
  /// them. This call removes their files:
  ///
  /// - One URL: its entries are found by name. Their files are removed before this call returns.
  /// - Everything: all entries become tombstones at once, even those of newer loads. Their files
  ///   are removed in the background. The result is `nil` until the index is complete.
  /// - A prefix, a host or a tag: all files are checked in the background. The result is `nil`.
  ///
  /// Unfinished work is recorded in the folder's purge journal and continues at the next start.
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

  /// See `DiskCache`. Entries stored during the call may be removed too. Entries stored later stay,
  /// whenever their load began. Files are removed in the background, also after a restart.
  @discardableResult public func clear() async throws(ImageError) -> Int {
    guard let parts else { return 0 }
    return try await parts.sweeper.perform(.clear).written().count
  }

  /// See `DiskCache`. Reads no body.
  public func look(for key: CacheKey) async -> CacheEntryInfo? { await parts?.look(key) }

  /// See `DiskCache`.
  @discardableResult public func clean() async -> CleanReport {
    await parts?.maintenance.clean() ?? CleanReport()
  }

  /// Writes the pending entries within `limit` and ends the tier's threads. Afterwards every
  /// look-up misses.
  ///
  /// - Returns: whether all pending entries were written.
  @discardableResult
  public func shutDown(within limit: Duration) async -> Bool {
    guard let parts else { return true }
    return await withCheckedContinuation { continuation in
      let finish: @Sendable () -> Void = { continuation.resume(returning: parts.shutDown(limit)) }
      do {
        try OwnThread.start(name: "pictor-end", rank: .work, finish)
      } catch {
        // Without a thread, block this one: the program is ending anyway.
        finish()
      }
    }
  }

  /// Whether the index is complete. Writing starts soon after, when the first clean is done.
  public var isIndexed: Bool { parts?.store.index.isComplete ?? true }

  /// The tier's figures, as `/stats` shows them.
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

  /// Bytes of pending writes.
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
