// DiskSweep: one pass over all entries on disk that removes purged files.

import Glibc
import Model

extension DiskStore {
  /// The result of a pass.
  struct SweepResult {
    var removed = 0
    /// Whether every entry was checked and every purged file is gone.
    var isComplete = true
  }

  /// Removes the files of tombstones and of purged entries. The keys are inside the files, so each
  /// file that `open` may cover is opened. The index must be complete.
  ///
  /// No lock is held while a file is read. A file that is renamed into a shard after the shard was
  /// copied needs no check. `place` has checked it under the `folders` lock, when the list of
  /// purges already held `open`.
  ///
  /// - Parameter isStopped: Called before each entry, without a lock.
  func sweep(_ open: [Purge], until isStopped: () -> Bool) -> SweepResult {
    var result = SweepResult()
    let meant = SweepNames(open)
    for shard in index.shards {
      let records = shard.folders.withLock { _ in shard.table.withLock { $0.records } }
      for (digest, record) in records {
        guard !isStopped() else {
          result.isComplete = false
          return result
        }
        let isDone: Bool
        if record.isTombstone {
          isDone =
            removeFile(digest, record.kind) { $0?.isTombstone == true } || !isTombstone(digest)
        } else {
          isDone = !meant.mayHold(digest) || removeIfPurged(digest, record.kind, &result)
        }
        if !isDone { result.isComplete = false }
      }
    }
    if isScanDue.load(ordering: .relaxed) { result.isComplete = false }
    return result
  }

  /// Returns whether an entry is a tombstone: its removal failed, but look-ups miss it.
  private func isTombstone(_ digest: EntryDigest) -> Bool {
    index.shard(of: digest).table.withLock { $0.records[digest]?.isTombstone == true }
  }

  /// The number of entries on disk that the index does not know yet, counted by file names.
  var unknownCount: Int {
    var count = 0
    for (number, shard) in index.shards.enumerated() {
      let known = shard.table.withLock { $0.isComplete ? nil : $0.records.count }
      guard let known else { continue }
      let first = number * DiskIndex.foldersPerShard
      let all = (first..<first + DiskIndex.foldersPerShard).reduce(0) { count, number in
        EntryKind.allCases.reduce(count) { count, kind in
          let names = DiskFolder.names(in: folder.folder(kind, number))
          return count + names.count { EntryDigest(hexadecimal: $0) != nil }
        }
      }
      count += max(all - known, 0)
    }
    return count
  }

  /// Checks one file and removes it if it is purged. Returns `false` if the check or the removal
  /// failed.
  private func removeIfPurged(
    _ digest: EntryDigest, _ kind: EntryKind, _ result: inout SweepResult
  ) -> Bool {
    switch EntryPrefix.read(folder.file(kind, digest)) {
    case .found(let entry):
      guard purges.covers(entry.key, generation: entry.generation) else { return true }
      guard removeFile(digest, kind, inode: entry.inode) else { return !isTombstone(digest) }
      result.removed += 1
      counts.purged.add()
    case .damaged(let inode):
      counts.damaged.add()
      log.warning("damaged cache entry removed", ["file": .string(digest.hexadecimal)])
      removeFile(digest, kind, inode: inode)
    case .absent:
      break
    case .failed(let error):
      fail(reading, error)
      // EIO is a permanent loss, so the entry is removed. Other errors may be temporary.
      guard error.code == EIO else { return false }
      removeFile(digest, kind)
      return !isTombstone(digest)
    }
    return true
  }
}

/// The file names that a set of purges may cover.
private struct SweepNames {
  private var highs: Set<UInt64> = []
  private var isAnyMeant = false

  init(_ purges: [Purge]) {
    for purge in purges {
      if case .url(let url) = purge.scope {
        highs.insert(EntryDigest(of: CacheKey(source: url)).high)
      } else {
        isAnyMeant = true
      }
    }
  }

  func mayHold(_ digest: EntryDigest) -> Bool { isAnyMeant || highs.contains(digest.high) }
}
