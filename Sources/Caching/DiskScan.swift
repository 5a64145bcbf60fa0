// DiskScan: the index made anew from what is on disk.

import Glibc
import Model

extension DiskStore {
  /// Reads names, sizes and times of all entries, no contents. Part by part the index becomes complete; meanwhile
  /// readers look on disk for what it does not know yet, and nothing is written.
  func scan(until isStopped: () -> Bool) {
    for (number, shard) in index.shards.enumerated() {
      let first = number * DiskIndex.foldersPerShard
      for kind in EntryKind.allCases { accountForUpperFolder(kind, first) }
      for folderNumber in first..<first + DiskIndex.foldersPerShard {
        if isStopped() { return }
        for kind in EntryKind.allCases { scanFolder(kind, folderNumber, shard) }
      }
      shard.table.withLock { $0.isComplete = true }
    }
  }

  private func scanFolder(_ kind: EntryKind, _ number: Int, _ shard: IndexShard) {
    let path = folder.folder(kind, number)
    let names = DiskFolder.names(in: path)
    let size = DiskFolder.blocks(of: path) * 512
    guard size > 0 || !names.isEmpty else { return }
    shard.folders.withLock { folders in
      let position = IndexShard.position(kind, number)
      space.add(size - folders[position].bytes)
      folders[position].bytes = size
      for name in names {
        // Names that are not ours are left alone, and so are entries in the wrong place: nobody asks for them there.
        guard let digest = EntryDigest(hexadecimal: name), digest.folder == number,
          let record = record(kind, path + "/" + name)
        else { continue }
        let isNew = shard.table.withLock { table in
          guard table.records[digest] == nil else { return false }
          table.records[digest] = record
          return true
        }
        guard isNew else { continue }
        folders[position].entries += 1
        space.add(record.bytes)
      }
      if folders[position].entries == 0, rmdir(path) == 0 {
        space.add(-folders[position].bytes)
        folders[position] = IndexShard.Folder()
      }
    }
  }

  private func record(_ kind: EntryKind, _ path: String) -> EntryRecord? {
    var status = stat()
    guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    let stored = UnixTime(seconds: status.st_mtim.tv_sec)
    return EntryRecord(
      kind: kind, blocks: Int(status.st_blocks), stored: stored,
      access: max(stored, UnixTime(seconds: status.st_atim.tv_sec)), isVerified: false)
  }

  /// Forgets what somebody else deleted, after the folder was found gone.
  func forgetMissing(until isStopped: () -> Bool) {
    for (number, shard) in index.shards.enumerated() {
      let all = shard.table.withLock { table in table.records.map { ($0.key, $0.value.kind) } }
      for (digest, kind) in all {
        if isStopped() { return }
        let path = folder.file(kind, digest)
        removeFile(digest, kind) { _ in access(path, F_OK) != 0 }
      }
      let first = number * DiskIndex.foldersPerShard
      for kind in EntryKind.allCases { accountForUpperFolder(kind, first) }
      shard.folders.withLock { folders in
        for folderNumber in first..<first + DiskIndex.foldersPerShard {
          for kind in EntryKind.allCases {
            let position = IndexShard.position(kind, folderNumber)
            guard folders[position].bytes > 0, folders[position].entries == 0,
              access(folder.folder(kind, folderNumber), F_OK) != 0
            else { continue }
            space.add(-folders[position].bytes)
            folders[position] = IndexShard.Folder()
          }
        }
      }
    }
  }
}
