// MemoryFile: bytes on their way into a file that exists in memory only and that nobody can change once it is whole.

import CLinux
import Glibc
import Model

/// A memory file (memfd_create(2)) being filled; its one owner until it is handed out, sealed.
public struct MemoryFile: ~Copyable {
  private let file: OwnedDescriptor
  /// Bytes written so far.
  public private(set) var count = 0

  /// An empty file.
  ///
  /// - Parameter name: as /proc/PID/fd shows it.
  public init(name: String) throws(SystemError) {
    let descriptor = pictor_linux_memory_file(name)
    guard descriptor >= 0 else { throw SystemError() }
    file = OwnedDescriptor(owning: descriptor)
  }

  /// For reading along while it is being filled; valid as long as this owner.
  public var descriptor: CInt { file.value }

  /// Writes all of `bytes` behind those already there.
  public mutating func append(_ bytes: UnsafeRawBufferPointer) throws(SystemError) {
    var rest = bytes
    while let start = rest.baseAddress, !rest.isEmpty {
      let written = write(file.value, start, rest.count)
      if written < 0 && errno == EINTR { continue }
      guard written > 0 else { throw SystemError() }
      count += written
      rest = UnsafeRawBufferPointer(rebasing: rest[written...])
    }
  }

  /// The whole file. Others map it, so from here on neither its bytes nor its length can change.
  public consuming func sealed() throws(SystemError) -> FileRegion {
    guard pictor_linux_add_seals(file.value, pictor_linux_all_seals()) == 0 else {
      throw SystemError()
    }
    let count = count
    return FileRegion(owning: file.release(), count: count)
  }
}
