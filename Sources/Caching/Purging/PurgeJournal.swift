// PurgeJournal: the file in the disk tier's folder that keeps purges which are not carried out.

import Glibc
import Model
import Platform
import Synchronization

extension DiskStore {
  private var journal: String { "\(folder.path)/purges" }

  /// Reads what an earlier run left over. To be called once, before anything is served.
  ///
  /// Its bytes are part of the variants' account from here on, which so leave it room. The file itself is never refused for
  /// want of that: a purge is to be had in a full tier above all, and a clean follows.
  ///
  /// - Throws: where there is such a file and it cannot be read: what was purged might be served.
  func readJournal() throws(SystemError) -> PurgeLogRecord {
    let descriptor = open(journal, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      guard errno == ENOENT else { throw SystemError() }
      return PurgeLogRecord()
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
    return PurgeLogRecord(parsing: String(decoding: bytes, as: UTF8.self)) { line in
      log.warning(
        "damaged line of the list of purges passed over",
        ["file": .string(journal), "line": .int(line)])
    }
  }

  /// Writes the file anew; nobody else may be at it.
  ///
  /// - Parameter isDurable: Whether it is to be on the medium when this returns, and not with the kernel alone: it then
  ///   outlives a power failure too.
  func writeJournal(_ notes: PurgeLogRecord, isDurable: Bool) throws(SystemError) {
    let (temporary, descriptor) = try createTemporary()
    var isMoved = false
    defer {
      close(descriptor)
      if !isMoved { unlink(temporary) }
    }
    var result: Result<Void, SystemError> = .success(())
    Array(notes.text.utf8).withUnsafeBytes { bytes in
      result = Result { () throws(SystemError) in try EntryFile.put(bytes, to: descriptor, at: 0) }
    }
    try result.get()
    guard !isDurable || fsync(descriptor) == 0 else { throw SystemError() }
    guard rename(temporary, journal) == 0 else { throw SystemError() }
    isMoved = true
    accountForJournal(DiskFolder.blocks(of: journal) * 512)
    if isDurable { try DiskFolder.sync(folder.path) }
  }

  private func accountForJournal(_ bytes: Int) {
    let share = space[.variant]
    let change = bytes - journalBytes.exchange(bytes, ordering: .relaxed)
    share.add(bytes: change)
    if change > 0, share.isNearlyFull { onShortage.withLock { $0 }?() }
  }
}
