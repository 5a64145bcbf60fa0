// DiskStore: reads, writes and removes single entries; calls may block and run on disk threads.

import Core
import Glibc
import Synchronization

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
    case .found((let entry, let verified)):
      index.update(digest) { record in
        record.times.access = now
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
    guard now != record.times.access || verified != record.verified else {
      return false
    }
    index.update(digest) { record in
      record.times.access = now
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
    do {
      var placement = try place(entry, ticket: ticket)
      if placement == .noRoom, makeRoomForOne(EntryKind(of: ticket.key)) {
        placement = try place(entry, ticket: ticket)
      }
      switch placement {
      case .placed:
        counts.stores.add()
        noteWritten()
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
    removeFile(ticket.digest, kind: EntryKind(of: ticket.key)) { _ in pending.isCurrent(ticket) }
  }

  /// Counts a failure and logs the first one of an episode.
  func fail(_ episode: FailureEpisode, with error: SystemError) {
    counts.failures.add()
    episode.fail(error.description)
  }

  /// Writes an entry to a temporary file and renames it into place.
  func place(_ entry: DiskEntry, ticket: PendingWrites.Ticket) throws(SystemError)
    -> DiskPlacement
  {
    // A folder may be created or grow by a block, and its parent may grow.
    let draft = EntryFile.Draft(entry)
    let blocks = (draft.length + folder.blockSize - 1) / folder.blockSize
    let reserved = blocks * folder.blockSize + 2 * folder.folderCost
    let kind = EntryKind(of: ticket.key)
    let digest = ticket.digest
    let share = space[kind]
    if let refusal = share.reserve(reserved) { return refusal }
    var taken = DiskUse(bytes: 0, files: 0)
    defer {
      share.add(bytes: taken.bytes - reserved, files: taken.files - 1)
      if share.isNearlyFull { onShortage.withLock { $0 }?() }
    }
    // After ENOSPC, check free space (one statvfs) before each write instead of writing partial
    // bodies. A file may need a new folder.
    if isDiskFull.load(ordering: .relaxed), !folder.hasRoom(bytes: reserved, inodes: 2) {
      throw SystemError(ENOSPC)
    }
    let (temporary, descriptor) = try createTemporary()
    var isMoved = false
    defer {
      close(descriptor)
      if !isMoved { unlink(temporary) }
    }
    try EntryFile.write(draft, to: descriptor)
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw SystemError() }
    let shard = index.shard(of: digest)
    let change = try shard.folders.withLock { folders throws(SystemError) -> DiskUse? in
      guard pending.isCurrent(ticket) else { return nil }
      // A sweep for a later purge waits for this lock and then finds the file.
      guard !purges.covers(ticket.key, generation: entry.generation) else {
        counts.purged.add()
        return nil
      }
      let old = shard.table.withLock { $0.records[digest] }
      var times = EntryTimes(storedAt: clock())
      if let old, !old.isTombstone { times.created = min(old.times.created, times.stored) }
      try times.write(to: descriptor)
      let position = IndexShard.position(kind, folder: digest.folder)
      try move(temporary, kind: kind, digest: digest, isFolderKnown: folders[position].entries > 0)
      isMoved = true
      // The replaced file keeps its room while it is open.
      openEntries.drop(digest)
      let record = EntryRecord(
        kind: kind, blocks: Int(status.st_blocks), times: times,
        // After the rename, which sets the change time.
        verified: FileStamp(of: descriptor)?.fingerprint ?? 0)
      shard.table.withLock { $0.records[digest] = record }
      var bytes = record.bytes - (old?.bytes ?? 0)
      if old == nil { folders[position].entries += 1 }
      let size = DiskFolder.blocks(of: folder.folder(kind, number: digest.folder)) * 512
      bytes += size - folders[position].bytes
      folders[position].bytes = size
      return DiskUse(bytes: bytes, files: old == nil ? 1 : 0)
    }
    guard let change else { return .unwanted }
    taken = change
    return .placed
  }

  /// Removes an entry's file and its record if `isWanted` accepts the record. If `inode` is given,
  /// the file must still have that number.
  ///
  /// - Returns: whether there was a file and it is removed.
  @discardableResult
  func removeFile(
    _ digest: EntryDigest, kind: EntryKind, inode: ino_t? = nil,
    where isWanted: (EntryRecord?) -> Bool = { _ in true }
  ) -> Bool {
    let shard = index.shard(of: digest)
    let path = folder.file(kind, of: digest)
    return shard.folders.withLock { folders in
      let (record, isComplete) = shard.table.withLock { ($0.records[digest], $0.isComplete) }
      guard record != nil || !isComplete, isWanted(record) else { return false }
      if let inode {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_ino == inode else { return false }
      }
      let isGone = unlink(path) == 0
      let error = SystemError()
      // Before its room counts as free.
      openEntries.drop(digest)
      guard isGone || error.code == ENOENT || error.code == ENOTDIR else {
        // The tombstone is absent for look-ups and keeps its space until a clean can remove the
        // file.
        shard.table.withLock { table in
          let unknown = EntryRecord(
            kind: kind, blocks: 0, times: EntryTimes(storedAt: clock()))
          var tombstone = record ?? unknown
          tombstone.isTombstone = true
          table.records[digest] = tombstone
        }
        if record == nil {
          folders[IndexShard.position(kind, folder: digest.folder)].entries += 1
          space[kind].add(bytes: 0, files: 1)
        }
        fail(removing, with: error)
        return false
      }
      removing.succeed()
      if let record {
        shard.table.withLock { $0.records[digest] = nil }
        space[kind].add(bytes: -record.bytes, files: -1)
        removeFolderIfEmpty(
          &folders[IndexShard.position(kind, folder: digest.folder)], kind: kind, digest: digest)
      }
      return isGone
    }
  }

  private func removeFolderIfEmpty(
    _ state: inout IndexShard.Folder, kind: EntryKind, digest: EntryDigest
  ) {
    state.entries -= 1
    guard state.entries <= 0 else { return }
    // rmdir fails if the folder still holds unindexed or foreign files. The folder then stays.
    guard rmdir(folder.folder(kind, number: digest.folder)) == 0 || errno == ENOENT else { return }
    space[kind].add(bytes: -state.bytes)
    state = IndexShard.Folder()
  }

  /// Creates a file in `tmp`. Recreates `tmp` if it was deleted.
  func createTemporary() throws(SystemError) -> (path: String, descriptor: CInt) {
    // Never write while another process may hold the lock: its index would not know the file.
    if !folder.isLocked { try healFolder() }
    for _ in 0..<2 {
      let path = folder.temporaryFile()
      let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
      if descriptor >= 0 { return (path, descriptor) }
      guard errno == ENOENT else { throw SystemError() }
      try healFolder()
    }
    throw SystemError(ENOENT)
  }

  /// Recreates deleted parts of the folder and requests a verification of the index.
  func healFolder() throws(SystemError) {
    guard try folder.heal() else { return }
    // Their files are in the folder that was deleted.
    openEntries.dropAll()
    onHeal.withLock { $0 }?()
  }

  /// Renames a file into place and creates a missing folder.
  ///
  /// - Parameter isFolderKnown: whether the index has entries in that folder. If the folder is
  ///   missing then, another process deleted it.
  private func move(
    _ temporary: String, kind: EntryKind, digest: EntryDigest, isFolderKnown: Bool
  ) throws(SystemError) {
    let target = folder.file(kind, of: digest)
    if rename(temporary, target) == 0 { return }
    guard errno == ENOENT else { throw SystemError() }
    if isFolderKnown { onHeal.withLock { $0 }?() }
    let path = folder.folder(kind, number: digest.folder)
    var isNew = mkdir(path, 0o700) == 0
    if !isNew, errno == ENOENT {
      try healFolder()
      isNew = mkdir(path, 0o700) == 0
    }
    guard isNew || errno == EEXIST, rename(temporary, target) == 0 else {
      let error = SystemError()
      if isNew { rmdir(path) }
      throw error
    }
  }
}
