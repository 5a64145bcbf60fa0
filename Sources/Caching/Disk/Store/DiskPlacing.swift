// DiskPlacing: how files get to their place on disk and leave it, with index and account in step.

import Glibc
import Model
import Platform

extension DiskStore {
  enum Placement {
    case placed
    /// A later word on the key came in between.
    case unwanted
    /// It does not fit below the limit now.
    case noRoom
    /// It never does.
    case tooLarge
  }

  /// Writes an entry to a temporary file and renames it to its place.
  func place(_ entry: DiskEntry, _ ticket: PendingWrites.Ticket) throws(SystemError) -> Placement {
    // Up to three folders may be new or grow by a block.
    let draft = EntryFile.Draft(entry)
    let blocks = (draft.length + folder.blockSize - 1) / folder.blockSize
    let reserved = blocks * folder.blockSize + 3 * folder.folderCost
    let (kind, digest) = (EntryKind(of: ticket.key), ticket.digest)
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
    // A disk that was full is asked, with one system call, before it is given, each time, all of a body that it takes a
    // part of. A file may need two folders.
    if isDiskFull.load(ordering: .relaxed), !folder.hasRoom(bytes: reserved, inodes: 3) {
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
      // A sweep for a purge that comes after this question waits for the lock, and then finds the file.
      guard !purges.covers(ticket.key, generation: entry.generation) else {
        counts.purged.add()
        return nil
      }
      let old = shard.table.withLock { $0.records[digest] }
      var times = EntryTimes(keptAt: clock())
      if let old, !old.isTombstone { times.created = min(old.times.created, times.stored) }
      times.write(to: descriptor)
      let position = IndexShard.position(kind, digest.folder)
      var bytes = try move(temporary, kind, digest, isFolderKnown: folders[position].entries > 0)
      isMoved = true
      let record = EntryRecord(
        kind: kind, blocks: Int(status.st_blocks), times: times, isVerified: true)
      shard.table.withLock { $0.records[digest] = record }
      bytes += record.bytes - (old?.bytes ?? 0)
      if old == nil { folders[position].entries += 1 }
      let size = DiskFolder.blocks(of: folder.folder(kind, digest.folder)) * 512
      bytes += size - folders[position].bytes
      folders[position].bytes = size
      return DiskUse(bytes: bytes, files: old == nil ? 1 : 0)
    }
    guard let change else { return .unwanted }
    taken = change
    return .placed
  }

  /// Removes an entry's file and forgets it, if `isWanted` says so of its record, and, where given, if it still is the
  /// file with that number.
  ///
  /// - Returns: whether there was a file, and it is gone.
  @discardableResult
  func removeFile(
    _ digest: EntryDigest, _ kind: EntryKind, inode: ino_t? = nil,
    where isWanted: (EntryRecord?) -> Bool = { _ in true }
  ) -> Bool {
    let shard = index.shard(of: digest)
    let path = folder.file(kind, digest)
    return shard.folders.withLock { folders in
      let (record, isComplete) = shard.table.withLock { ($0.records[digest], $0.isComplete) }
      guard record != nil || !isComplete, isWanted(record) else { return false }
      if let inode {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_ino == inode else { return false }
      }
      let isGone = unlink(path) == 0
      guard isGone || errno == ENOENT || errno == ENOTDIR else {
        let error = SystemError()
        // Nobody is to find it any more, but it takes its space until a later clean can remove it.
        shard.table.withLock { table in
          let unknown = EntryRecord(
            kind: kind, blocks: 0, times: EntryTimes(keptAt: clock()), isVerified: false)
          var dead = record ?? unknown
          dead.isTombstone = true
          table.records[digest] = dead
        }
        if record == nil {
          folders[IndexShard.position(kind, digest.folder)].entries += 1
          space[kind].add(bytes: 0, files: 1)
        }
        fail(removing, error)
        return false
      }
      removing.succeed()
      if let record {
        shard.table.withLock { $0.records[digest] = nil }
        space[kind].add(bytes: -record.bytes, files: -1)
        removeFolderIfEmpty(&folders[IndexShard.position(kind, digest.folder)], kind, digest)
      }
      return isGone
    }
  }

  private func removeFolderIfEmpty(
    _ state: inout IndexShard.Folder, _ kind: EntryKind, _ digest: EntryDigest
  ) {
    state.entries -= 1
    guard state.entries <= 0 else { return }
    // It may hold files that are not indexed yet, or not ours: then it stays.
    guard rmdir(folder.folder(kind, digest.folder)) == 0 || errno == ENOENT else { return }
    space[kind].add(bytes: -state.bytes)
    state = IndexShard.Folder()
  }

  /// Makes a new file in the folder of those being written, which is made anew where somebody deleted it.
  func createTemporary() throws(SystemError) -> (path: String, descriptor: CInt) {
    // Not beside another process, which has its own idea of what is in the folder.
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

  /// Makes anew what somebody deleted, and has what is left looked at.
  func healFolder() throws(SystemError) {
    if try folder.heal() { onHeal.withLock { $0 }?() }
  }

  /// Renames a file to its place, making the folders on the way; returns what a new upper folder takes.
  ///
  /// - Parameter isFolderKnown: whether there are entries in that folder; then somebody deleted them with it if it is gone.
  private func move(
    _ temporary: String, _ kind: EntryKind, _ digest: EntryDigest, isFolderKnown: Bool
  ) throws(SystemError) -> Int {
    let target = folder.file(kind, digest)
    if rename(temporary, target) == 0 { return 0 }
    guard errno == ENOENT else { throw SystemError() }
    if isFolderKnown { onHeal.withLock { $0 }?() }
    let taken = try makeUpperFolder(kind, digest.folder)
    let path = folder.folder(kind, digest.folder)
    let isNew = mkdir(path, 0o700) == 0
    guard isNew || errno == EEXIST, rename(temporary, target) == 0 else {
      let error = SystemError()
      if isNew { rmdir(path) }
      space[kind].add(bytes: taken)
      throw error
    }
    return taken
  }

  /// Makes an upper folder where it is absent; returns what it takes that was not counted yet.
  private func makeUpperFolder(_ kind: EntryKind, _ number: Int) throws(SystemError) -> Int {
    try upperFolders.withLock { counted throws(SystemError) in
      let path = folder.upperFolder(kind, number)
      if mkdir(path, 0o700) != 0, errno == ENOENT {
        try healFolder()
        mkdir(path, 0o700)
      }
      guard access(path, F_OK) == 0 else { throw SystemError() }
      return recount(kind, number, &counted)
    }
  }

  /// Takes an upper folder into the account where it is there, and out of it where it is not.
  func accountForUpperFolder(_ kind: EntryKind, _ number: Int) {
    upperFolders.withLock { space[kind].add(bytes: recount(kind, number, &$0)) }
  }

  private func recount(_ kind: EntryKind, _ number: Int, _ counted: inout [Int]) -> Int {
    let position = Int(kind.rawValue) * 16 + number >> 8
    let size = DiskFolder.blocks(of: folder.upperFolder(kind, number)) * 512
    defer { counted[position] = size }
    return size - counted[position]
  }
}
