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
  let counts = DiskCounts()
  let purges: Purges
  let clock: @Sendable () -> UnixTime
  let log: Log
  let promotionThreshold: Int
  /// Called when a write found no room, or when little is left. Set once, before the first write.
  let onShortage = Lock<(@Sendable () -> Void)?>(nil)
  /// Called when the folder was deleted and has been recreated.
  let onHeal = Lock<(@Sendable () -> Void)?>(nil)
  let reading: FailureEpisode
  let writing: FailureEpisode
  let removing: FailureEpisode
  let queueing: FailureEpisode
  /// The accounted size of each upper folder; by kind, then first digit.
  let upperFolders = Lock([Int](repeating: 0, count: 32))
  /// The accounted size of the purge journal.
  let journalBytes = Atomic<Int>(0)
  let clockEpisode: ClockEpisode
  /// Whether a write failed for lack of disk space and there has been little space since.
  let isDiskFull = Atomic<Bool>(false)
  /// Whether a part of the folder could not be read by the last scan.
  let isScanDue = Atomic<Bool>(false)

  /// Whether the tier is shut down. The folder may belong to another process then.
  let isEnded = Atomic<Bool>(false)

  init(
    folder: DiskFolder, configuration: DiskTierConfiguration, purges: Purges = Purges(), log: Log,
    clock: @escaping @Sendable () -> UnixTime
  ) {
    (self.folder, self.purges, self.clock, self.log) = (folder, purges, clock, log)
    space = DiskSpace(configuration, base: folder.baseCost)
    pending = PendingWrites(limit: configuration.writeQueueLimit)
    promotionThreshold = configuration.promotionThreshold
    reading = FailureEpisode("read from the cache folder", log: log)
    writing = FailureEpisode("write to the cache folder", log: log)
    removing = FailureEpisode("remove from the cache folder", log: log)
    queueing = FailureEpisode("keep up with writing to the cache folder", log: log)
    clockEpisode = ClockEpisode(log: log)
  }

  /// Reads an entry. Returns `nil` if there is no intact entry.
  func read(_ key: CacheKey, _ digest: EntryDigest) -> DiskEntry? {
    let kind = EntryKind(of: key)
    var options = EntryFile.ReadOptions(
      isVerified: false, promotionThreshold: promotionThreshold, access: nil,
      purges: purges)
    let now = clock()
    if case .present(let record) = index.lookUp(digest) {
      options.isVerified = record.isVerified
      if record.times.isTouchDue(now) { options.access = now }
    }
    switch EntryFile.read(folder.file(kind, digest), key: key, options: options) {
    case .found(let entry):
      index.update(digest) { record in
        record.times.access = now
        record.isVerified = true
      }
      reading.succeed()
      return entry
    case .absent:
      // Another process deleted the file. Forget it, unless it has been written again meanwhile.
      let path = folder.file(kind, digest)
      removeFile(digest, kind) { $0 != nil && access(path, F_OK) != 0 }
    case .damaged(let inode):
      counts.damaged.add()
      log.warning("damaged cache entry removed", ["key": .string(key.text)])
      removeFile(digest, kind, inode: inode)
    case .purged(let inode):
      if removeFile(digest, kind, inode: inode) { counts.purged.add() }
    case .failed(let error):
      fail(reading, error)
    }
    return nil
  }

  /// Returns the metadata of the entry of `key` on disk, without its body.
  func look(_ key: CacheKey, _ digest: EntryDigest) -> CacheEntryInfo? {
    guard case .found(let entry) = EntryPrefix.read(folder.file(EntryKind(of: key), digest)),
      entry.key == key, !purges.covers(key, generation: entry.generation)
    else { return nil }
    return CacheEntryInfo(
      bytes: entry.bodyLength, freshness: entry.freshness, generation: entry.generation)
  }

  /// Records a use of an entry in the index. Returns whether the access time of its file should be
  /// updated too.
  func noteUse(_ digest: EntryDigest, _ record: EntryRecord) -> Bool {
    let now = clock()
    guard now != record.times.access || !record.isVerified else { return false }
    index.update(digest) { record in
      record.times.access = now
      record.isVerified = true
    }
    return record.times.isTouchDue(now)
  }

  /// Sets the access time of an entry's file to now.
  func touch(_ digest: EntryDigest, _ kind: EntryKind) {
    EntryTimes.touch(folder.file(kind, digest), clock())
  }

  /// Performs the pending operation of a ticket.
  func write(_ ticket: PendingWrites.Ticket) {
    defer { pending.finish(ticket) }
    guard let entry = ticket.entry else { return remove(ticket) }
    do {
      switch try place(entry, ticket) {
      case .placed:
        counts.stores.add()
        noteWritten()
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
      fail(writing, error)
    }
    // The write failed or was refused, so the older entry on disk is outdated.
    remove(ticket)
  }

  /// Ends the episode of failed writes. After ENOSPC the episode ends only when there is plenty of
  /// room; otherwise each small entry that still fits would end it.
  private func noteWritten() {
    if isDiskFull.load(ordering: .relaxed) {
      let plenty = min(space.limit / 16, 64 << 20)
      guard folder.hasRoom(bytes: plenty, inodes: 64) else { return }
      isDiskFull.store(false, ordering: .relaxed)
    }
    writing.succeed()
  }

  /// Removes the entry of a ticket's key, unless a later operation replaced the ticket.
  func remove(_ ticket: PendingWrites.Ticket) {
    removeFile(ticket.digest, EntryKind(of: ticket.key)) { _ in pending.isCurrent(ticket) }
  }

  /// Counts a failure and logs the first one of an episode.
  func fail(_ episode: FailureEpisode, _ error: SystemError) {
    counts.failures.add()
    episode.fail(error.description)
  }
}
