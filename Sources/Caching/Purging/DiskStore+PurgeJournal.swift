// DiskStore+PurgeJournal: reads and writes the file of the purge journal.

import Glibc
import Model
import Platform
import Synchronization

extension DiskStore {
  private var journalPath: String { "\(folder.path)/purges" }

  /// Reads the unfinished purges of an earlier run. Must be called once, before anything is served.
  ///
  /// The file's size counts in the share of the variants from here on. The file may exceed the
  /// limit: a purge must work in a full tier, and a clean follows.
  ///
  /// - Throws: the system error if the file exists and cannot be read, because purged images might
  ///   be served.
  func readJournal() throws(SystemError) -> PurgeJournal {
    let descriptor = open(journalPath, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
    guard descriptor >= 0 else {
      guard errno == ENOENT else { throw SystemError() }
      return PurgeJournal()
    }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else {
      let error = SystemError()
      close(descriptor)
      throw error
    }
    let file = FileRegion(owning: descriptor, count: Int(status.st_size))
    var bytes = [UInt8](repeating: 0, count: file.count)
    var result: Result<Void, SystemError> = .success(())
    bytes.withUnsafeMutableBytes { buffer in
      result = Result { () throws(SystemError) in
        _ = try EntryFile.fill(buffer, from: file, at: 0, count: file.count)
      }
    }
    try result.get()
    accountForJournal(Int(status.st_blocks) * 512)
    return PurgeJournal(parsing: String(decoding: bytes, as: UTF8.self)) { line in
      log.warning(
        "damaged line in the purge journal skipped",
        fields: ["file": .string(journalPath), "line": .int(line)])
    }
  }

  /// Replaces the file. Only one thread may call this at a time.
  ///
  /// - Parameter isDurable: Whether the file is synced to the medium before this returns, so that
  ///   it survives a power failure.
  func writeJournal(_ journal: PurgeJournal, isDurable: Bool) throws(SystemError) {
    let (temporary, descriptor) = try createTemporary()
    var isMoved = false
    defer {
      close(descriptor)
      if !isMoved { unlink(temporary) }
    }
    var result: Result<Void, SystemError> = .success(())
    Array(journal.text.utf8).withUnsafeBytes { bytes in
      result = Result { () throws(SystemError) in try EntryFile.put(bytes, to: descriptor, at: 0) }
    }
    try result.get()
    guard !isDurable || fsync(descriptor) == 0 else { throw SystemError() }
    guard rename(temporary, journalPath) == 0 else { throw SystemError() }
    isMoved = true
    accountForJournal(DiskFolder.blocks(of: journalPath) * 512)
    if isDurable { try DiskFolder.sync(folder.path) }
  }

  private func accountForJournal(_ bytes: Int) {
    let share = space[.variant]
    let change = bytes - journalBytes.exchange(bytes, ordering: .relaxed)
    share.add(bytes: change)
    if change > 0, share.isNearlyFull { onShortage.withLock { $0 }?() }
  }
}
