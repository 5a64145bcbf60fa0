// FileRegion+Tests: files made and read by tests.

import Core
import Glibc

extension FileRegion {
  /// Returns bytes in a new sealed memory file, as a download is.
  public static func sealed(_ bytes: [UInt8]) throws -> FileRegion {
    var file = try MemoryFile(name: "test")
    try bytes.withUnsafeBytes { try file.append($0) }
    return try file.sealed()
  }

  /// All bytes; empty if they cannot be read.
  public var bytes: [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { buffer, done in
      done = max(pread(descriptor, buffer.baseAddress, count, off_t(offset)), 0)
    }
  }
}
