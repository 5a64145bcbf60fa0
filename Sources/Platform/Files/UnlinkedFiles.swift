// UnlinkedFiles: files without a name, whose room on disk ends with their last reader.

import Glibc

/// Copies bytes into files without a name. The kernel frees a file's room when its last descriptor
/// is closed, after a crash as well.
public final class UnlinkedFiles: Sendable {
  /// The bytes of all files that are in use.
  public let budget: ByteBudget
  private let folder: String

  /// Creates the owner of the files.
  ///
  /// - Parameters:
  ///   - folder: an existing folder on a disk. A file has a name in it for a moment.
  ///   - limit: the maximum of all files in use, in bytes.
  public init(folder: String, limit: Int) {
    self.folder = folder
    budget = ByteBudget(limit: limit)
  }

  /// Copies a region into a new file. Blocks on the disk.
  ///
  /// - Throws: `ENOSPC` above the limit or on a full disk; else the error of the system call.
  public func copy(_ region: FileRegion) throws(SystemError) -> FileRegion {
    guard let lease = budget.lease(region.count) else { throw SystemError(ENOSPC) }
    let file = try create()
    var offset = off_t(region.offset)
    let end = region.offset + region.count
    while Int(offset) < end {
      let count = sendfile(file.value, region.descriptor, &offset, end - Int(offset))
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { throw count < 0 ? SystemError() : SystemError(EIO) }
    }
    return FileRegion(owning: file.release(), count: region.count, lease: lease)
  }

  private func create() throws(SystemError) -> OwnedDescriptor {
    while true {
      let path = "\(folder)/sent-\(String(UInt64.random(in: 0...(.max)), radix: 36))"
      let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
      if descriptor < 0 && errno == EEXIST { continue }
      guard descriptor >= 0 else { throw SystemError() }
      unlink(path)
      return OwnedDescriptor(owning: descriptor)
    }
  }
}
