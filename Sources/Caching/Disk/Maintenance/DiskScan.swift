// DiskScan: rebuilds the index from the files on disk.

import Glibc
import Model
import Platform

extension DiskStore {
  /// Adds all entries on disk to the index, from file names, sizes and times alone. The index
  /// becomes complete shard by shard; meanwhile readers ask the disk for unknown entries. Records
  /// that already exist stay unchanged.
  func scan(until isStopped: () -> Bool) {
    isScanDue.store(false, ordering: .relaxed)
    for (number, shard) in index.shards.enumerated() {
      let first = number * DiskIndex.foldersPerShard
      for kind in EntryKind.allCases {
        for folderNumber in first..<first + DiskIndex.foldersPerShard {
          if isStopped() { return }
          do {
            try scanFolder(kind, number: folderNumber, into: shard)
          } catch {
            // Its files are missing from the accounting, so a later clean scans again.
            isScanDue.store(true, ordering: .relaxed)
            fail(reading, with: error)
          }
        }
      }
      shard.table.withLock { $0.isComplete = true }
    }
  }

  private func scanFolder(_ kind: EntryKind, number: Int, into shard: IndexShard)
    throws(SystemError)
  {
    let path = folder.folder(kind, number: number)
    let names = try DiskFolder.contents(of: path)
    shard.folders.withLock { folders in
      let size = DiskFolder.blocks(of: path) * 512
      let position = IndexShard.position(kind, folder: number)
      space[kind].add(bytes: size - folders[position].bytes)
      folders[position].bytes = size
      for name in names {
        // Skips foreign names and entries in the wrong folder, which no look-up finds.
        guard let digest = EntryDigest(hexadecimal: name), digest.folder == number,
          shard.table.withLock({ $0.records[digest] }) == nil,
          let record = record(kind, at: path + "/" + name)
        else { continue }
        shard.table.withLock { $0.records[digest] = $0.found(record) }
        folders[position].entries += 1
        space[kind].add(bytes: record.bytes, files: 1)
      }
      if folders[position].entries == 0, rmdir(path) == 0 {
        space[kind].add(bytes: -folders[position].bytes)
        folders[position] = IndexShard.Folder()
      }
    }
  }

  private func record(_ kind: EntryKind, at path: String) -> EntryRecord? {
    var status = stat()
    guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    return EntryRecord(
      kind: kind, blocks: Int(status.st_blocks), times: EntryTimes(of: status))
  }

  /// Prepares a clean: recreates a deleted folder, above all its lock, and scans again after an
  /// incomplete scan.
  func lookAfterFolder(until isStopped: () -> Bool) {
    do {
      try healFolder()
    } catch {
      fail(writing, with: error)
    }
    if isScanDue.load(ordering: .relaxed) { scan(until: isStopped) }
  }

  /// Updates the index after another process deleted or added files.
  func verify(until isStopped: () -> Bool) {
    forgetMissing(until: isStopped)
    scan(until: isStopped)
  }

  private func forgetMissing(until isStopped: () -> Bool) {
    for (number, shard) in index.shards.enumerated() {
      let all = shard.table.withLock { table in table.records.map { ($0.key, $0.value.kind) } }
      for (digest, kind) in all {
        if isStopped() { return }
        let path = folder.file(kind, of: digest)
        removeFile(digest, kind: kind) { _ in access(path, F_OK) != 0 }
      }
      let first = number * DiskIndex.foldersPerShard
      shard.folders.withLock { folders in
        for folderNumber in first..<first + DiskIndex.foldersPerShard {
          for kind in EntryKind.allCases {
            let position = IndexShard.position(kind, folder: folderNumber)
            guard folders[position].bytes > 0, folders[position].entries == 0,
              access(folder.folder(kind, number: folderNumber), F_OK) != 0
            else { continue }
            space[kind].add(bytes: -folders[position].bytes)
            folders[position] = IndexShard.Folder()
          }
        }
      }
    }
  }
}
