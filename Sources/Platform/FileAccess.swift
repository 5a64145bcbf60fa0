// FileAccess: reads of a file, with and without waiting for its disk.

import CLinux
import Glibc

/// How a file's bytes are read; tests replace it to have a disk that does not answer.
public struct FileAccess: Sendable {
  /// Copies bytes from an offset on: their number, 0 at the file's end, -1 with `errno`.
  public typealias Read = @Sendable (CInt, UnsafeMutableRawBufferPointer, Int) -> Int

  /// Copies what the page cache has, without waiting. Fails with `EAGAIN` where it has nothing, with `EOPNOTSUPP` where the
  /// file system cannot tell (preadv2(2), `RWF_NOWAIT`).
  public var readAtOnce: Read = { file, buffer, offset in
    pictor_linux_read_cached(file, buffer.baseAddress, buffer.count, off_t(offset))
  }
  /// Waits for the disk (pread(2)).
  public var read: Read = { pread($0, $1.baseAddress, $1.count, off_t($2)) }

  /// The kernel's own.
  public init() {}
}

extension FileRegion {
  /// Whether the file is in memory only (memfd_create(2), tmpfs), so that no read of it waits for a disk. Only such files
  /// know of seals (fcntl(2), `F_GET_SEALS`).
  public var isInMemory: Bool { pictor_linux_get_seals(descriptor) >= 0 }
}
