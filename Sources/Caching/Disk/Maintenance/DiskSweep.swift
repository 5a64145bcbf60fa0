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
    let candidates = SweepFilter(open)
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
            removeFile(digest, kind: record.kind) { $0?.isTombstone == true }
            || !isTombstone(digest)
        } else {
          isDone =
            !candidates.mayCover(digest) || removeIfPurged(digest, kind: record.kind, into: &result)
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
          let names = DiskFolder.names(in: folder.folder(kind, number: number))
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
    _ digest: EntryDigest, kind: EntryKind, into result: inout SweepResult
  ) -> Bool {
    switch EntryPrefix.read(folder.file(kind, of: digest)) {
    case .found(let entry):
      guard purges.covers(entry.key, generation: entry.generation) else { return true }
      guard removeFile(digest, kind: kind, inode: entry.inode) else { return !isTombstone(digest) }
      result.removed += 1
      counts.purged.add()
    case .damaged(let inode):
      counts.damaged.add()
      log.warning("damaged cache entry removed", fields: ["file": .string(digest.hexadecimal)])
      guard removeFile(digest, kind: kind, inode: inode) else { return !isTombstone(digest) }
    case .absent:
      break
    case .failed(let error):
      fail(reading, with: error)
      // EIO is a permanent loss, so the entry is removed. Other errors may be temporary.
      guard error.code == EIO else { return false }
      removeFile(digest, kind: kind)
      return !isTombstone(digest)
    }
    return true
  }
}

/// The entries that a set of purges may cover, told by their digests alone.
private struct SweepFilter {
  private var urlDigests: Set<UInt64> = []
  private var matchesAll = false

  init(_ purges: [Purge]) {
    for purge in purges {
      if case .url(let url) = purge.scope {
        urlDigests.insert(EntryDigest(of: CacheKey(source: url)).high)
      } else {
        matchesAll = true
      }
    }
  }

  func mayCover(_ digest: EntryDigest) -> Bool { matchesAll || urlDigests.contains(digest.high) }
}
