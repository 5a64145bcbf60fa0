// DiskSweep: one pass over everything on disk that removes what purges mean.

import Glibc
import Model

extension DiskStore {
  /// What a pass did.
  struct SweepResult {
    var removed = 0
    /// Whether it saw everything, and nothing that is to go is left.
    var isComplete = true
  }

  /// Removes what was hidden, and what the list of purges covers. The keys are in the files: the beginning of each is
  /// read that one of `open` may mean. The index must be complete.
  ///
  /// No lock is held while a file is read. Whatever is renamed to its place after its part was copied was asked about
  /// before with the folders' lock held, and so after the purges of `open` were in the list.
  ///
  /// - Parameter isStopped: Asked before each entry, without a lock.
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

  /// Whether a file is still to be removed: it could not be, and is absent to all who look.
  private func isTombstone(_ digest: EntryDigest) -> Bool {
    index.shard(of: digest).table.withLock { $0.records[digest]?.isTombstone == true }
  }

  /// Entries on disk that the index does not know yet, counted by the names of their files.
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

  /// Tells whether the file could be judged, and is gone where it is to be.
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
      // What the medium has lost is of no use to anybody; anything else may heal.
      guard error.code == EIO else { return false }
      removeFile(digest, kind)
      return !isTombstone(digest)
    }
    return true
  }
}

/// By name, which files purges may mean.
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
