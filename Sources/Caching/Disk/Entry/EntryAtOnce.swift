// EntryAtOnce: reads a small entry's file on a thread that must not block.

import CLinux
import Glibc
import Model
import Platform

extension EntryFile {
  /// Reads a variant whose file has at most `limit` bytes, if the kernel has all of it cached. The
  /// path comes from the directory cache (openat2(2), `RESOLVE_CACHED`, Linux 5.12), the bytes from
  /// the page cache (preadv2(2), `RWF_NOWAIT`).
  ///
  /// - Parameters:
  ///   - memory: What the body counts against. Without room for it, the result is `nil`.
  ///   - isWanted: Called before the body is checked.
  /// - Returns: `nil` if the file is not cached or is damaged, or if the system does not support
  ///   these calls. `read` then finds out which.
  static func readAtOnce(
    _ path: String, key: CacheKey, limit: Int, memory: ByteBudget,
    where isWanted: (VariantInfo) -> Bool
  ) -> Variant? {
    let descriptor = pictor_linux_open_cached(path)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    return withUnsafeTemporaryAllocation(byteCount: limit + 1, alignment: 16) { buffer in
      let count = pictor_linux_read_cached(descriptor, buffer.baseAddress, buffer.count, 0)
      guard count > 0, count <= limit else { return nil }
      let file = UnsafeRawBufferPointer(rebasing: buffer[..<count])
      // Rejects files that are longer or shorter than their header says, and partial reads.
      guard let header = EntryHeader(decoding: file), header.fileLength == count,
        let metadata = header.metadata(in: file), metadata.key == key.text,
        case .variant(let info) = metadata.content, isWanted(info)
      else { return nil }
      let body = UnsafeRawBufferPointer(rebasing: file[header.bodyOffset...])
      guard EntryHeader.checksum(body) == header.bodyChecksum,
        let lease = memory.lease(body.count)
      else { return nil }
      return Variant(key: key, info: info, body: .memory(ImageBytes(copying: body, lease: lease)))
    }
  }

  /// Maximum length of such a file in bytes. A longer file would delay the event loop's other
  /// clients.
  static let longestAtOnce = 128 << 10
}
