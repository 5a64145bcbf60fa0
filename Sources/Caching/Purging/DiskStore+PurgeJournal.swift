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
    noteJournal(PurgeJournalFile(bytes: Int(status.st_blocks) * 512))
    return PurgeJournal(parsing: String(decoding: bytes, as: UTF8.self)) { line in
      log.warning(
        "damaged line in the purge journal skipped",
        fields: ["file": .string(journalPath), "line": .int(line)])
    }
  }

  /// Appends lines to the file. Only one thread may call this and `writeJournal` at a time.
  ///
  /// - Parameter isDurable: Whether the lines are synced to the medium before this returns.
  /// - Returns: whether it is done. Otherwise the file must be replaced: this run has not written
  ///   it, it holds much that is finished, or it could not be written.
  func appendToJournal(_ lines: PurgeJournal, isDurable: Bool) -> Bool {
    var file = journal.withLock { $0 }
    guard folder.isLocked, let length = file.length, length < file.limit else { return false }
    let descriptor = open(journalPath, O_WRONLY | O_CLOEXEC | O_NOFOLLOW)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_size == length else { return false }
    let bytes = Array(lines.text.utf8)
    do {
      try bytes.withUnsafeBytes { try EntryFile.put($0, to: descriptor, at: length) }
    } catch {
      return false
    }
    guard !isDurable || fdatasync(descriptor) == 0, fstat(descriptor, &status) == 0 else {
      return false
    }
    file.length = length + bytes.count
    file.bytes = Int(status.st_blocks) * 512
    noteJournal(file)
    return true
  }

  /// Replaces the file, durably.
  func writeJournal(_ journal: PurgeJournal) throws(SystemError) {
    let (temporary, descriptor) = try createTemporary()
    var isMoved = false
    defer {
      close(descriptor)
      if !isMoved { unlink(temporary) }
    }
    let bytes = Array(journal.text.utf8)
    var result: Result<Void, SystemError> = .success(())
    bytes.withUnsafeBytes { bytes in
      result = Result { () throws(SystemError) in try EntryFile.put(bytes, to: descriptor, at: 0) }
    }
    try result.get()
    // Without this sync before the rename, a power failure may leave an empty file in its place.
    guard fsync(descriptor) == 0 else { throw SystemError() }
    guard rename(temporary, journalPath) == 0 else { throw SystemError() }
    isMoved = true
    var file = PurgeJournalFile(bytes: DiskFolder.blocks(of: journalPath) * 512)
    noteJournal(file)
    try DiskFolder.sync(folder.path)
    file.length = bytes.count
    file.limit = max(2 * bytes.count, 65_536)
    noteJournal(file)
  }

  private func noteJournal(_ file: PurgeJournalFile) {
    let share = space[.variant]
    let old = journal.withLock { journal in
      defer { journal = file }
      return journal
    }
    share.add(bytes: file.bytes - old.bytes)
    if file.bytes > old.bytes, share.isNearlyFull { onShortage.withLock { $0 }?() }
  }
}

/// The file of the purge journal as it was last written.
struct PurgeJournalFile {
  /// The accounted size.
  var bytes = 0
  /// The length; `nil` if the last write failed, or before the first of this run.
  var length: Int?
  /// From this length on, the file is replaced by one of unfinished purges.
  var limit = 0
}
