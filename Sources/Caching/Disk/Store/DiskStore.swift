// DiskStore: the disk tier's work on single entries; each call may block and runs on one of the tier's threads.

import Glibc
import Model
import Platform
import Synchronization
import Telemetry

/// Files, index and account, kept in step.
///
/// A file gets to its place by renaming and leaves it by unlinking, both under the lock of its part of the index, which
/// is what makes index, account and disk agree. Nothing is synced to the medium: what a power failure tears is found by
/// its checksums at the first read.
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
  /// Told when a write found no room, or when there will soon be none; set once, before the first write.
  let onShortage = Lock<(@Sendable () -> Void)?>(nil)
  /// Told when the folder was found deleted, and made anew.
  let onHeal = Lock<(@Sendable () -> Void)?>(nil)
  let reading: FailureEpisode
  let writing: FailureEpisode
  let removing: FailureEpisode
  let queueing: FailureEpisode
  /// What each folder of the upper level is in the account with; by kind, then first digit.
  let upperFolders = Lock([Int](repeating: 0, count: 32))
  /// What the list of purges is in the account with.
  let journalBytes = Atomic<Int>(0)
  let clockEpisode: ClockEpisode
  /// Whether the disk had no room for a write, and has had little since.
  let isDiskFull = Atomic<Bool>(false)
  /// Whether a part of the folder could not be read when the index was made.
  let isScanDue = Atomic<Bool>(false)

  /// Whether the tier was shut down: the folder may belong to another process.
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

  /// Reads an entry back; `nil` where there is none that is whole.
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
      // Somebody else deleted it; unless it is here again by now.
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

  /// What is kept under `key` on disk, without its body.
  func look(_ key: CacheKey, _ digest: EntryDigest) -> CacheEntryInfo? {
    guard case .found(let entry) = EntryPrefix.read(folder.file(EntryKind(of: key), digest)),
      entry.key == key, !purges.covers(key, generation: entry.generation)
    else { return nil }
    return CacheEntryInfo(
      bytes: entry.bodyLength, freshness: entry.freshness, generation: entry.generation)
  }

  /// Notes in the index that an entry is used now; tells whether it is time to write that to its file, too.
  func noteUse(_ digest: EntryDigest, _ record: EntryRecord) -> Bool {
    let now = clock()
    guard now != record.times.access || !record.isVerified else { return false }
    index.update(digest) { record in
      record.times.access = now
      record.isVerified = true
    }
    return record.times.isTouchDue(now)
  }

  /// Writes the time of use to an entry's file.
  func touch(_ digest: EntryDigest, _ kind: EntryKind) {
    EntryTimes.touch(folder.file(kind, digest), clock())
  }

  /// Writes what is waiting for `key`.
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
    // What was kept before under this key is not what was stored last.
    remove(ticket)
  }

  /// Ends the episode of failed writes. A disk is full until it has plenty of room: between entries that still fit and
  /// others that do not, there would be an episode each.
  private func noteWritten() {
    if isDiskFull.load(ordering: .relaxed) {
      let plenty = min(space.limit / 16, 64 << 20)
      guard folder.hasRoom(bytes: plenty, inodes: 64) else { return }
      isDiskFull.store(false, ordering: .relaxed)
    }
    writing.succeed()
  }

  /// Removes what is kept under a ticket's key, unless something was stored since.
  func remove(_ ticket: PendingWrites.Ticket) {
    removeFile(ticket.digest, EntryKind(of: ticket.key)) { _ in pending.isCurrent(ticket) }
  }

  /// Counts and, once an episode, logs that something could not be done.
  func fail(_ episode: FailureEpisode, _ error: SystemError) {
    counts.failures.add()
    episode.fail(error.description)
  }
}
