// MemoryFile: a file in memory that becomes immutable when it is complete.

import CLinux
import Glibc

/// A memory file (memfd_create(2)) that is being filled. Owns the file until `sealed` hands it out.
public struct MemoryFile: ~Copyable {
  private let file: OwnedDescriptor
  /// The number of bytes written so far.
  public private(set) var count = 0

  /// Creates an empty file.
  ///
  /// - Parameter name: the name in /proc/PID/fd.
  public init(name: String) throws(SystemError) {
    let descriptor = pictor_linux_memory_file(name)
    guard descriptor >= 0 else { throw SystemError() }
    file = OwnedDescriptor(owning: descriptor)
  }

  /// Takes ownership of an empty file.
  public init(owning file: consuming OwnedDescriptor) { self.file = file }

  /// The descriptor for reading while the file is being filled. Valid as long as this value.
  public var descriptor: CInt { file.value }

  /// Appends all of `bytes`.
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

  /// Returns the complete file. Seals prevent changes of content and size, because others map the
  /// file.
  ///
  /// - Parameter lease: what the bytes count against until their last use; `nil` for nothing.
  public consuming func sealed(lease: ByteLease? = nil) throws(SystemError) -> FileRegion {
    guard pictor_linux_add_seals(file.value, pictor_linux_all_seals()) == 0 else {
      throw SystemError()
    }
    let count = count
    return FileRegion(owning: file.release(), count: count, lease: lease)
  }
}
