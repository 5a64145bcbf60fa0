// DiskTier: sources and variants on disk, below a size limit, kept across restarts.

import Core

/// The settings of the disk tier, with limits that operators cannot set.
public struct DiskTierConfiguration: PartConfiguration {
  /// The keys `disk.…`.
  public var settings: DiskSettings
  /// The cache folder, created if needed. `nil` disables the tier.
  public var path: String?
  /// Maximum age of an entry in seconds. A negative value means no limit.
  public var maximumAge: Int
  /// Maximum bytes of pending writes. Entries beyond it are not stored.
  public var writeQueueLimit: Int
  /// Maximum number of queued reads. Look-ups beyond it are misses.
  public var readQueueLimit = 4_096
  /// Deadline of a read. A later answer is a miss.
  public var readTimeout: Duration = .seconds(10)
  /// Maximum number of small variants whose files stay open. The server derives it from the limit
  /// of descriptors.
  public var openFiles = 1_024
  /// Number of disk threads, at least 2. One of them is always free for reads.
  public var threads = 3

  /// Creates the configuration of a tier; the plan decides what `settings` leave open.
  public init(_ settings: DiskSettings, plan: MemoryPlan = .unlimited()) {
    self.settings = settings
    path = settings.path
    maximumAge = settings.maximumAge?.flooredSeconds ?? -1
    writeQueueLimit = plan.writeQueue
  }

  /// Creates the default configuration for a folder.
  public init(path: String?) {
    self.init(DiskSettings())
    self.path = path
  }
}

/// A cache of sources and variants on disk. A disk error never fails an image request: a failed
/// read is a miss, and a failed write stores nothing. A purge, a clear or an upload can fail.
///
/// - An accepted entry is readable at once from the write queue. A disk thread writes it later.
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
  /// - Parameters:
  ///   - purges: the list of purges to carry out. Unfinished purges of an earlier run join it.
  ///   - memory: what variants in memory count against. Without room, they stay in their files.
  /// - Throws: `DiskTierError` if the folder cannot be used.
  public init(
    _ configuration: DiskTierConfiguration, purges: Purges = Purges(),
    memory: ByteBudget = .unlimited,
    log: Log, clock: @escaping @Sendable () -> UnixTime = { .now }
  ) throws(DiskTierError) {
    self.purges = purges
    guard let path = configuration.path, configuration.limit > 0 else {
      parts = nil
      return
    }
    let store = DiskStore(
      folder: try DiskFolder(path: path), configuration: configuration, purges: purges,
      memory: memory, log: log, clock: clock)
    // Must run before the first write: it removes `tmp`, where a killed process left its files.
    store.folder.removeLeftovers()
    let sweeper = try Self.sweeper(for: store, configuration)
    let threads = try DiskEngine.threads(configuration)
    let maintenance = DiskMaintenance(store: store, configuration: configuration)
    store.onShortage.withLock { $0 = { [weak maintenance] in maintenance?.requestClean() } }
    store.onHeal.withLock { $0 = { [weak maintenance] in maintenance?.requestVerification() } }
    try sweeper.start()
    do {
      try maintenance.start { [weak threads, weak sweeper] in
        threads?.release()
        sweeper?.begin()
      }
    } catch {
      sweeper.stop()
      throw error
    }
    parts = DiskEngine(
      store: store, threads: threads, maintenance: maintenance, sweeper: sweeper)
  }

  deinit {
    parts?.maintenance.stop()
    parts?.sweeper.stop()
    parts?.threads.stop()
  }

  /// Reads the purge journal, puts its purges in force and creates the sweeper that finishes them.
  /// Must run before the first look-up.
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
        path: store.folder.path, reason: "its purge journal cannot be read: \(error.description)")
    }
  }

  /// See `DiskCache`.
  public func variant(for key: CacheKey) async -> Variant? {
    guard !key.isSource, case .variant(let variant) = await entry(for: key) else { return nil }
    return variant
  }

  /// See `DiskCache`. Counts a hit and never a miss: if this returns `nil`, the caller calls
  /// `variant(for:)`, which counts the result.
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

  /// See `DiskCache`. Refuses the variant and counts a failure if it is too large or the write
  /// queue is full; the older entry of the key is removed too. Refuses without a failure at
  /// shutdown and if a purge covers the variant.
  public func store(_ variant: Variant, for demand: VariantDemand) -> StoreOutcome {
    guard let parts, !variant.key.isSource else { return .refused }
    guard parts.admits(variant.key, for: demand) else { return .deferred }
    let isFreeForm: Bool? = demand == .replacement ? nil : demand != .vouched
    return parts.storeEntry(.variant(variant), isFreeForm: isFreeForm)
      ? .stored : .refused
  }

  /// See `DiskCache`. Drops the source and counts a failure if the write queue is full.
  @discardableResult public func store(_ source: Source) -> Bool {
    source.key.isSource && parts?.storeEntry(.source(source)) ?? false
  }

  /// See `DiskCache`. Look-ups that start after this call miss; entries stored after it stay.
  /// Returns after the attempt: a file that cannot be removed becomes a tombstone.
  public func remove(_ key: CacheKey) async {
    guard let parts else { return }
    await withCheckedContinuation { continuation in
      parts.removeEntry(key) { continuation.resume() }
    }
  }

  /// See `DiskCache`. Returns when removal was tried, as `remove` of a key does.
  public func remove(allOf url: SourceURL) async -> Int {
    guard let parts else { return 0 }
    return await withCheckedContinuation { continuation in
      parts.remove(.all(of: url)) { continuation.resume(returning: $0.count) }
    }
  }

  /// See `DiskCache`. Variants stored during the call may be removed too; variants stored later
  /// stay. Returns when removal was tried, as `remove` does.
  public func removeVariants(of source: CacheKey) async {
    guard let parts, source.isSource else { return }
    await withCheckedContinuation { continuation in
      parts.remove(.variants(of: source)) { _ in continuation.resume() }
    }
  }

  /// See `DiskCache`. The purged entries are already misses, because the list of purges covers
  /// them. This call removes their files:
  ///
  /// - One URL: its entries are found by name. Their files are removed before this call returns;
  ///   what cannot be removed now is left to the sweeper.
  /// - Everything: all indexed entries become tombstones, also newer ones, but not their pending
  ///   writes. Files are removed in the background. Returns `nil` if the index is incomplete.
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
      _ = try await parts.sweeper.perform(.writeDown(purge)).written()
      return nil
    }
  }

  /// See `DiskCache`.
  public func recordPurges() async throws(ImageError) {
    _ = try await parts?.sweeper.perform(.writeDown(nil)).written()
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

  /// Writes the pending entries and ends the tier's threads. Takes up to 2 s longer than `limit`.
  /// Afterwards every look-up misses.
  ///
  /// - Returns: whether all pending entries were written and all threads have ended.
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

  /// Creates the owner of nameless files on the tier's disk, for variants that are sent and not in
  /// memory; `nil` if the tier is off. Each owner's files may take another sixteenth of the limit.
  public func makeUnlinkedFiles() -> UnlinkedFiles? {
    parts.map {
      UnlinkedFiles(folder: $0.store.folder.temporaryFolder, limit: $0.store.space.limit / 16)
    }
  }

  /// Whether the index is complete. Writing starts soon after, when the first clean is done.
  public var isIndexed: Bool { parts?.store.index.isComplete ?? true }

  /// The tier's figures, as `/stats` shows them.
  public var figures: Figures {
    let store = parts?.store
    let counts = store?.counts ?? TierCounters()
    let entries = store.map { $0.space[.variant].use.files + $0.space[.source].use.files }
    let clearing = parts?.sweeper.isClearing == true ? 1 : 0
    var figures = counts.figures(
      of: "disk", entries: entries ?? 0,
      bytes: store?.space.bytes ?? 0, limit: store?.space.limit ?? 0,
      purgesPending: store == nil ? 0 : purges.unfinishedCount + clearing)
    figures.add(
      "deferred", counts.deferred.value, "pictor_disk_deferred_variants_total",
      "Variants not stored at their first request.")
    figures.add(
      "displaced", counts.displaced.value, "pictor_disk_displaced_variants_total",
      "Variants removed because their source has too many.")
    figures.add(
      "open_files", store?.openEntries.count ?? 0, "pictor_disk_open_files",
      "Files of entries that are kept open.")
    if let store {
      figures.add(
        "latency", counts.latency.figures, "pictor_disk_lookup_duration_seconds",
        "Time of look-ups on disk that found an entry.")
      figures.add("variants", store.space[.variant].figures(of: "variant"))
      figures.add("sources", store.space[.source].figures(of: "source"))
    }
    return figures
  }

  /// Bytes held by pending writes and removals: bodies, keys, and an overhead for each.
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
}

/// A reason why the disk tier cannot start, as one line for the operator.
public enum DiskTierError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The folder cannot be created or written to. `reason` is the system's error text.
  case unusable(path: String, reason: String)
  /// The path of the lock file is not a regular file.
  case lockIsNotAFile(path: String, found: String)
  /// Another user may change the folder or one inside it. `reason` says how, and what to do.
  case untrusted(path: String, reason: String)
  /// Another process uses this folder.
  case inUse(path: String)
  /// A thread cannot be created.
  case noThread(reason: String)

  /// The error as one line.
  public var description: String {
    switch self {
    case .unusable(let path, let reason): "the cache folder '\(path)' cannot be used: \(reason)"
    case .lockIsNotAFile(let path, let found):
      """
      '\(path)/lock' is \(found) and must be a file: remove it, or name another folder in \
      disk.path
      """
    case .untrusted(let path, let reason): "the cache folder '\(path)' is not safe: \(reason)"
    case .inUse(let path):
      """
      the cache folder '\(path)' is in use by another process: stop it, or name another folder in \
      disk.path
      """
    case .noThread(let reason): "cannot start a thread for the disk cache: \(reason)"
    }
  }
}
