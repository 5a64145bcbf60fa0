// DiskStore: reads and writes single entries; each call may block and runs on a disk thread.

import Glibc
import Model
import Platform
import Synchronization
import Telemetry

/// The files, the index and the accounting, kept consistent.
///
/// A file is renamed into place and unlinked under the `folders` lock of its shard, so index,
/// accounting and disk agree. Entries are not synced to the medium. Their checksums detect damage
/// by a power failure at the first read.
final class DiskStore: Sendable {
  let folder: DiskFolder
  let index = DiskIndex()
  let space: DiskSpace
  let pending: PendingWrites
  let counts = TierCounters()
  let purges: Purges
  let clock: @Sendable () -> UnixTime
  let log: Log
  let promotionThreshold: Int
  /// The files of popular small variants.
  let openEntries: OpenEntries
  /// What variants in memory count against.
  let memory: ByteBudget
  let admission: DiskAdmission
  /// The free-form variants of each source; `nil` without a limit.
  let quota: Lock<VariantQuota>?
  /// The fraction of a share that a clean leaves. At most 0.9, below the high-water mark: otherwise
  /// the next write would request the next clean.
  let fractionLeft: Double
  /// Called when a write found no room, or when little is left. Set once, before the first write.
  let onShortage = Lock<(@Sendable () -> Void)?>(nil)
  /// Called when the folder was deleted and has been recreated.
  let onHeal = Lock<(@Sendable () -> Void)?>(nil)
  let reading: FailureEpisode
  let writing: FailureEpisode
  let removing: FailureEpisode
  let queueing: FailureEpisode
  let journal = Lock(PurgeJournalFile())
  let clockEpisode: ClockEpisode
  /// Whether a write failed for lack of disk space and there has been little space since.
  let isDiskFull = Atomic<Bool>(false)
  /// Whether a part of the folder could not be read by the last scan.
  let isScanDue = Atomic<Bool>(false)

  /// Whether the tier is shut down. The folder may belong to another process then.
  let isEnded = Atomic<Bool>(false)

  init(
    folder: DiskFolder, configuration: DiskTierConfiguration, purges: Purges = Purges(),
    memory: ByteBudget = .unlimited, log: Log, clock: @escaping @Sendable () -> UnixTime
  ) {
    self.memory = memory
    self.folder = folder
    self.purges = purges
    self.clock = clock
    self.log = log
    space = DiskSpace(configuration, base: folder.baseCost)
    pending = PendingWrites(limit: configuration.writeQueueLimit)
    promotionThreshold = configuration.promotionThreshold
    openEntries = OpenEntries(limit: configuration.openFiles)
    admission = DiskAdmission(configuration.admission)
    let perSource = configuration.variantsPerSource
    quota = perSource > 0 ? Lock(VariantQuota(limit: perSource)) : nil
    fractionLeft = min(max(configuration.cleanFraction, 0), 0.9)
    reading = FailureEpisode("read from the cache folder", log: log)
    writing = FailureEpisode("write to the cache folder", log: log)
    removing = FailureEpisode("remove from the cache folder", log: log)
    queueing = FailureEpisode("keep up with writing to the cache folder", log: log)
    clockEpisode = ClockEpisode(log: log)
  }

  /// Reads an entry. Returns `nil` if there is no intact entry.
  func read(_ key: CacheKey, digest: EntryDigest) -> DiskEntry? {
    let kind = EntryKind(of: key)
    var options = EntryFile.ReadOptions(
      promotionThreshold: promotionThreshold, memory: memory, access: nil,
      purges: purges)
    let now = clock()
    if case .present(let record) = index.lookUp(digest) {
      options.verified = record.verified
      if record.times.isTouchDue(now) { options.access = now }
    }
    switch EntryFile.read(folder.file(kind, of: digest), key: key, options: options) {
    case .found(let entry, let verified):
      index.update(digest) { record in
        record.times.access = now
        record.isUsed = true
        record.verified = verified
      }
      reading.succeed()
      return entry
    case .absent:
      // Another process deleted the file. Forget it, unless it has been written again meanwhile.
      let path = folder.file(kind, of: digest)
      removeFile(digest, kind: kind) { $0 != nil && access(path, F_OK) != 0 }
    case .damaged(let inode):
      counts.damaged.add()
      log.warning("damaged cache entry removed", fields: ["key": .string(key.text)])
      removeFile(digest, kind: kind, inode: inode)
    case .purged(let inode):
      if removeFile(digest, kind: kind, inode: inode) { counts.purged.add() }
    case .failed(let error):
      fail(reading, with: error)
    }
    return nil
  }

  /// Returns the metadata of the entry of `key` on disk, without its body.
  func look(_ key: CacheKey, digest: EntryDigest) -> CacheEntryInfo? {
    guard case .found(let entry) = EntryPrefix.read(folder.file(EntryKind(of: key), of: digest)),
      entry.key == key, !purges.covers(key, generation: entry.generation)
    else { return nil }
    var info = CacheEntryInfo(
      bytes: entry.bodyLength, freshness: entry.freshness, generation: entry.generation)
    switch entry.content {
    case .variant(let variant):
      info.stored = .variant(variant)
      info.isInMemory = entry.bodyLength <= promotionThreshold
    case .source(let origin, _, let version, _): info.stored = .source(origin, version: version)
    }
    return info
  }

  /// Records a use of an entry in the index. Returns whether the access time of its file should be
  /// updated too.
  ///
  /// - Parameter verified: the fingerprint of the state in which the file was verified.
  func noteUse(_ digest: EntryDigest, record: EntryRecord, verified: UInt32) -> Bool {
    let now = clock()
    guard now != record.times.access || !record.isUsed || verified != record.verified else {
      return false
    }
    index.update(digest) { record in
      record.times.access = now
      record.isUsed = true
      record.verified = verified
    }
    return record.times.isTouchDue(now)
  }

  /// Sets the access time of an entry's file to now.
  func touch(_ digest: EntryDigest, kind: EntryKind) {
    EntryTimes.touch(folder.file(kind, of: digest), access: clock())
  }

  /// Performs the pending operation of a ticket.
  func write(_ ticket: PendingWrites.Ticket) {
    defer { pending.finish(ticket) }
    guard let entry = ticket.entry else { return remove(ticket) }
    let failures = writing.failures
    do {
      var placement = try place(entry, ticket: ticket)
      if placement == .noRoom, makeRoomForOne(EntryKind(of: ticket.key)) {
        placement = try place(entry, ticket: ticket)
      }
      switch placement {
      case .placed:
        counts.stores.add()
        noteWritten(since: failures)
        keepQuota(ticket)
        return
      case .unwanted:
        return
      case .noRoom:
        counts.failures.add()
        onShortage.withLock { $0 }?()
      case .tooLarge:
        counts.failures.add()
      }
    } catch {
      if error.code == ENOSPC { isDiskFull.store(true, ordering: .relaxed) }
      fail(writing, with: error)
    }
    // The write failed or was refused, so the older entry on disk is outdated.
    remove(ticket)
  }

  /// Removes the source's oldest free-form variant if the one just written is one too many.
  private func keepQuota(_ ticket: PendingWrites.Ticket) {
    guard let quota, let isFreeForm = ticket.isFreeForm, !ticket.key.isSource else { return }
    let oldest = quota.withLock { quota in
      guard isFreeForm else {
        quota.forget(ticket.digest)
        return nil as EntryDigest?
      }
      return quota.note(ticket.digest)
    }
    if let oldest, removeFile(oldest, kind: .variant, where: { $0 != nil }) {
      counts.displaced.add()
    }
  }

  /// Ends the episode of failed writes. After ENOSPC the episode ends only when there is plenty of
  /// room; otherwise each small entry that still fits would end it.
  ///
  /// - Parameter failures: The number of failures when the write began. Several threads write.
  private func noteWritten(since failures: Int) {
    if isDiskFull.load(ordering: .relaxed) {
      let plenty = min(space.limit / 16, 64 << 20)
      guard folder.hasRoom(bytes: plenty, inodes: 64) else { return }
      isDiskFull.store(false, ordering: .relaxed)
    }
    writing.succeed(since: failures)
  }

  /// Removes the entry of a ticket's key, unless a later operation replaced the ticket.
  func remove(_ ticket: PendingWrites.Ticket) {
    removeFile(ticket.digest, kind: EntryKind(of: ticket.key)) { _ in pending.isCurrent(ticket) }
  }

  /// Counts a failure and logs the first one of an episode.
  func fail(_ episode: FailureEpisode, with error: SystemError) {
    counts.failures.add()
    episode.fail(error.description)
  }
}
