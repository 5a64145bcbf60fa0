// DiskPlacing: moves files into place and removes them, keeping index and accounting correct.

import Glibc
import Model
import Platform

extension DiskStore {
  enum Placement {
    case placed
    /// A later operation on the key, or a purge, came in between.
    case unwanted
    /// It does not fit below the limit now.
    case noRoom
    /// It is larger than the limit.
    case tooLarge
  }

  /// Writes an entry to a temporary file and renames it into place.
  func place(_ entry: DiskEntry, ticket: PendingWrites.Ticket) throws(SystemError) -> Placement {
    // A folder may be created or grow by a block, and its parent may grow.
    let draft = EntryFile.Draft(entry)
    let blocks = (draft.length + folder.blockSize - 1) / folder.blockSize
    let reserved = blocks * folder.blockSize + 2 * folder.folderCost
    let kind = EntryKind(of: ticket.key)
    let digest = ticket.digest
    let share = space[kind]
    switch share.reserve(reserved) {
    case .made: break
    case .noRoom: return .noRoom
    case .tooLarge: return .tooLarge
    }
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
        kind: kind, blocks: Int(status.st_blocks), times: times, isUsed: true,
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
