// EntryAtOnce: reading a small entry's file on a thread that must not wait for the disk.

import CLinux
import Glibc
import Model

extension EntryFile {
  /// Reads a variant whose file has at most `limit` bytes, if the kernel has all of it at hand: its path in
  /// the directory cache (openat2(2), `RESOLVE_CACHED`, Linux 5.12) and its bytes in the page cache (preadv2(2),
  /// `RWF_NOWAIT`).
  ///
  /// - Parameter isWanted: Asked before the body is looked at.
  /// - Returns: `nil` where any of that is not so, where the kernel or the file system knows no such calls, and for a
  ///   file that is not what was written; `read` then says which.
  static func readAtOnce(
    _ path: String, key: CacheKey, limit: Int, where isWanted: (VariantInfo) -> Bool
  ) -> Variant? {
    let descriptor = pictor_linux_open_cached(path)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    return withUnsafeTemporaryAllocation(byteCount: limit + 1, alignment: 16) { buffer in
      let count = pictor_linux_read_cached(descriptor, buffer.baseAddress, buffer.count, 0)
      guard count > 0, count <= limit else { return nil }
      let file = UnsafeRawBufferPointer(rebasing: buffer[..<count])
      // A file that is longer or shorter than its header says, or came in part, ends here.
      guard let header = EntryHeader(decoding: file), header.fileLength == count,
        let metadata = header.metadata(in: file), metadata.key == key.text,
        case .variant(let info) = metadata.content, isWanted(info)
      else { return nil }
      let body = UnsafeRawBufferPointer(rebasing: file[header.bodyOffset...])
      guard EntryHeader.checksum(body) == header.bodyChecksum else { return nil }
      return Variant(key: key, info: info, body: .memory(ImageBytes(copying: body)))
    }
  }

  /// Bytes that a file may take to be read so: more would keep the thread's other clients waiting.
  static let longestAtOnce = 128 << 10
}
