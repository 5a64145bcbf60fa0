// FileRegion: a part of an open file, with shared read access.

import Glibc

/// A region of an open file. Owns the descriptor and closes it with the last reference.
///
/// The bytes of a region do not change: the disk tier replaces files by renaming, and memory files
/// are sealed. The exception is a local source, which its owner may change. So readers must
/// validate its bytes on every read.
public final class FileRegion: Sendable {
  /// The open descriptor, for reading only.
  public let descriptor: CInt
  /// The offset of the first byte in the file.
  public let offset: Int
  /// The number of bytes.
  public let count: Int
  /// What the bytes count against, as long as this region exists; `nil` if against nothing.
  public let lease: ByteLease?

  /// Takes ownership of `descriptor`.
  public init(owning descriptor: CInt, offset: Int = 0, count: Int, lease: ByteLease? = nil) {
    self.descriptor = descriptor
    self.offset = offset
    self.count = count
    self.lease = lease
  }

  deinit { close(descriptor) }
}
