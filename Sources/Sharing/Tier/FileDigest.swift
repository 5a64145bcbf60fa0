// FileDigest: the SHA-256 of a file's bytes.

import CGLib
import Glibc
import Platform

/// Digests of files.
enum FileDigest {
  /// Returns the SHA-256 of a region in hexadecimal; `nil` if it cannot be read. Blocks.
  static func sha256(of file: FileRegion) -> String? {
    guard let checksum = g_checksum_new(G_CHECKSUM_SHA256) else { return nil }
    defer { g_checksum_free(checksum) }
    var buffer = [UInt8](repeating: 0, count: min(file.count, 256 << 10))
    var done = 0
    while done < file.count {
      let wanted = min(buffer.count, file.count - done)
      let count = buffer.withUnsafeMutableBytes {
        pread(file.descriptor, $0.baseAddress, wanted, off_t(file.offset + done))
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return nil }
      g_checksum_update(checksum, buffer, gssize(count))
      done += count
    }
    return g_checksum_get_string(checksum).map { String(cString: $0) }
  }
}
