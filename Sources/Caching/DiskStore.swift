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
  /// Whether a write found no room since the last clean.
  let isShort = Atomic<Bool>(false)

  /// Whether the tier was shut down: the folder may belong to another process.
  let isEnded = Atomic<Bool>(false)

  /// A time that is written to a file at most once in so many seconds.
  static let accessGranularity = 300

  init(
    folder: DiskFolder, configuration: DiskTierConfiguration, log: Log,
    clock: @escaping @Sendable () -> UnixTime
  ) {
    (self.folder, self.clock, self.log) = (folder, clock, log)
    space = DiskSpace(limit: configuration.limit)
    space.add(folder.baseCost)
    pending = PendingWrites(limit: configuration.writeQueueLimit)
    promotionThreshold = configuration.promotionThreshold
    reading = FailureEpisode("read from the cache folder", log: log)
    writing = FailureEpisode("write to the cache folder", log: log)
    removing = FailureEpisode("remove from the cache folder", log: log)
    queueing = FailureEpisode("keep up with writing to the cache folder", log: log)
  }

  /// Reads an entry back; `nil` where there is none that is whole.
  func read(_ key: CacheKey, _ digest: EntryDigest) -> DiskEntry? {
    let kind = EntryKind(of: key)
    var options = EntryFile.ReadOptions(
      isVerified: false, promotionThreshold: promotionThreshold, access: nil)
    let now = clock()
    if case .present(let record) = index.lookUp(digest) {
      options.isVerified = record.isVerified
      if isTouchDue(record, now) { options.access = now }
    }
    switch EntryFile.read(folder.file(kind, digest), key: key, options: options) {
    case .found(let entry):
      index.update(digest) { record in
        record.access = now
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
    case .failed(let error):
      fail(reading, error)
    }
    return nil
  }

  /// Notes in the index that an entry is used now; tells whether it is time to write that to its file, too.
  func noteUse(_ digest: EntryDigest, _ record: EntryRecord) -> Bool {
    let now = clock()
    guard now != record.access || !record.isVerified else { return false }
    index.update(digest) { record in
      record.access = now
      record.isVerified = true
    }
    return isTouchDue(record, now)
  }

  /// Whether the time of use in an entry's file is to be renewed.
  private func isTouchDue(_ record: EntryRecord, _ now: UnixTime) -> Bool {
    now.seconds / Self.accessGranularity != record.access.seconds / Self.accessGranularity
  }

  /// Writes the time of use to an entry's file.
  func touch(_ digest: EntryDigest, _ kind: EntryKind) {
    EntryFile.touch(folder.file(kind, digest), clock())
  }

  /// Writes what is waiting for `key`.
  func write(_ ticket: PendingWrites.Ticket) {
    defer { pending.finish(ticket) }
    guard let entry = ticket.entry else { return remove(ticket) }
    do {
      switch try place(entry, ticket) {
      case .placed:
        counts.stores.add()
        writing.succeed()
        return
      case .unwanted:
        return
      case .noRoom:
        counts.failures.add()
        isShort.store(true, ordering: .relaxed)
        onShortage.withLock { $0 }?()
      }
    } catch {
      fail(writing, error)
    }
    // What was kept before under this key is not what was stored last.
    remove(ticket)
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
