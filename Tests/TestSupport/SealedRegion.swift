// Sources for tests: bytes in a memory file, as a download is.

import Model
import Platform

extension FileRegion {
  /// Bytes in a sealed memory file that nobody else has.
  public static func sealed(_ bytes: [UInt8]) throws -> FileRegion {
    var file = try MemoryFile(name: "test")
    try bytes.withUnsafeBytes { try file.append($0) }
    return try file.sealed()
  }
}
