// EntryAtOnce: reads a small entry's file on a thread that must not block.

import CLinux
import Glibc
import Model
import Platform

extension EntryFile {
  /// A variant that was read without blocking.
  struct FoundAtOnce {
    let variant: Variant
    /// The `FileStamp.fingerprint` of its file, taken before the bytes were read. Its body is
    /// intact in this state.
    let fingerprint: UInt32
    /// The whole file, still open.
    let file: FileRegion
    /// Where the body is in it.
    let body: Range<Int>
  }

  /// The result of reading a file that was kept open.
  enum OpenRead {
    case found(Variant)
    /// The file is no longer the one that was verified.
    case changed
    /// The kernel has not all of it cached, memory has no room, or the caller rejects it.
    case unavailable
  }

  /// Reads the body of a file that was kept open, if the kernel has all of it cached and the file
  /// has not changed since its verification.
  static func readAtOnce(
    _ open: OpenEntry, memory: ByteBudget, where isWanted: (VariantInfo) -> Bool
  ) -> OpenRead {
    guard isWanted(open.info), let lease = memory.lease(open.body.count) else {
      return .unavailable
    }
    let bytes = ImageBytes(capacity: open.body.count, lease: lease) { buffer in
      let count = pictor_linux_read_cached(
        open.file.descriptor, buffer.baseAddress, buffer.count, open.body.lowerBound)
      return count == buffer.count ? 0..<count : nil
    }
    // Follows the bytes: a write sets the times before the bytes, and an unlink the change time.
    guard FileStamp(of: open.file.descriptor)?.fingerprint == open.fingerprint else {
      return .changed
    }
    return bytes.map { .found(Variant(key: open.key, info: open.info, body: .memory($0))) }
      ?? .unavailable
  }

  /// Reads a variant whose file has at most `limit` bytes, if the kernel has all of it cached. The
  /// path comes from the directory cache (openat2(2), `RESOLVE_CACHED`, Linux 5.12), the bytes from
  /// the page cache (preadv2(2), `RWF_NOWAIT`).
  ///
  /// - Parameters:
  ///   - path: The path, relative to `root`.
  ///   - root: An open folder.
  ///   - verified: the fingerprint of the file's verified state; 0 for none.
  ///   - memory: What the file's bytes count against. Without room for them, the result is `nil`.
  ///   - isWanted: Called before the body is checked.
  /// - Returns: `nil` if the file is not cached or is damaged, or if the system does not support
  ///   these calls. `read` then finds out which.
  static func readAtOnce(
    _ path: String, in root: CInt, key: CacheKey, limit: Int, verified: UInt32,
    memory: ByteBudget, where isWanted: (VariantInfo) -> Bool
  ) -> FoundAtOnce? {
    let descriptor = pictor_linux_open_cached(root, path)
    guard descriptor >= 0 else { return nil }
    // Taken before the bytes are read: a change during the read leaves another stamp for later.
    let state = FileStamp(of: descriptor)
    // Closes the descriptor.
    let whole = FileRegion(owning: descriptor, count: state?.size ?? 0)
    guard let stamp = state, stamp.size <= limit, let lease = memory.lease(stamp.size) else {
      return nil
    }
    var found: (info: VariantInfo, body: Range<Int>)?
    let bytes = ImageBytes(capacity: stamp.size, lease: lease) { buffer in
      let count = pictor_linux_read_cached(descriptor, buffer.baseAddress, buffer.count, 0)
      guard count == stamp.size else { return nil }
      let file = UnsafeRawBufferPointer(buffer)
      // Taken again: a write sets the times first, so these bytes are of the known state.
      let isKnown =
        verified == stamp.fingerprint && FileStamp(of: descriptor)?.fingerprint == verified
      // Rejects files that are longer or shorter than their header says.
      guard let header = EntryHeader(decoding: file), header.fileLength == count,
        let metadata = header.metadata(in: file, isKnown: isKnown), metadata.key == key.text,
        case .variant(let info) = metadata.content, isWanted(info)
      else { return nil }
      let body = header.bodyOffset..<count
      guard
        isKnown
          || EntryHeader.checksum(UnsafeRawBufferPointer(rebasing: file[body]))
            == header.bodyChecksum
      else { return nil }
      found = (info, body)
      return body
    }
    guard let bytes, let found else { return nil }
    return FoundAtOnce(
      variant: Variant(key: key, info: found.info, body: .memory(bytes)),
      fingerprint: stamp.fingerprint, file: whole, body: found.body)
  }

  /// Maximum length of such a file in bytes. A longer file would delay the event loop's other
  /// clients.
  static let longestAtOnce = 128 << 10
}
