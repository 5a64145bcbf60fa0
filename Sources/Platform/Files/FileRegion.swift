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

  /// Returns a region of some of the bytes. It counts against the same lease.
  ///
  /// - Parameter range: positions in this region.
  /// - Throws: if there are too many descriptors.
  public func part(_ range: Range<Int>) throws(SystemError) -> FileRegion {
    let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    guard copy >= 0 else { throw SystemError() }
    return FileRegion(
      owning: copy, offset: offset + range.lowerBound, count: range.count, lease: lease)
  }

  /// Reads exactly `count` bytes into a buffer, from a position in this region on. Returns them.
  ///
  /// - Throws: `EIO` if the file ends earlier.
  public func read(
    _ count: Int, at position: Int = 0, into buffer: UnsafeMutableRawBufferPointer
  ) throws(SystemError) -> UnsafeRawBufferPointer {
    guard let start = buffer.baseAddress, count <= buffer.count else { throw SystemError(EINVAL) }
    var done = 0
    while done < count {
      let read = pread(descriptor, start + done, count - done, offset + position + done)
      if read < 0 && errno == EINTR { continue }
      guard read > 0 else { throw read < 0 ? SystemError() : SystemError(EIO) }
      done += read
    }
    return UnsafeRawBufferPointer(start: start, count: count)
  }

  deinit { close(descriptor) }
}

extension FileRegion: Hashable {
  /// Regions are equal if they are the same object.
  public static func == (left: FileRegion, right: FileRegion) -> Bool { left === right }
  /// Hashes the object's identity.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
