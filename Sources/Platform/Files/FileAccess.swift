// FileAccess: reads of a file, with and without waiting for its disk.

import CLinux
import Glibc

/// Reads a file's bytes. Tests replace it to simulate a disk that does not answer.
public struct FileAccess: Sendable {
  /// Copies bytes, starting at an offset. Returns their number: 0 at the end of the file, -1 with
  /// `errno` on failure.
  public typealias Read = @Sendable (CInt, UnsafeMutableRawBufferPointer, Int) -> Int

  /// Copies what the page cache has, without waiting (preadv2(2), `RWF_NOWAIT`). Fails with
  /// `EAGAIN` if it has nothing, and with `EOPNOTSUPP` if the file system does not support this.
  public var readAtOnce: Read = { file, buffer, offset in
    pictor_linux_read_cached(file, buffer.baseAddress, buffer.count, off_t(offset))
  }
  /// Waits for the disk (pread(2)).
  public var read: Read = { pread($0, $1.baseAddress, $1.count, off_t($2)) }

  /// Reads with the kernel's calls.
  public init() {}
}

extension FileRegion {
  /// Whether the file exists in memory only (memfd_create(2), tmpfs), so that reading it never
  /// waits for a disk. Only such files support seals (fcntl(2), `F_GET_SEALS`).
  public var isInMemory: Bool { pictor_linux_get_seals(descriptor) >= 0 }
}
