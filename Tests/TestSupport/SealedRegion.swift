// SealedRegion: test sources as sealed memory files, like downloads.

import Model
import Platform

extension FileRegion {
  /// Returns bytes in a new sealed memory file.
  public static func sealed(_ bytes: [UInt8]) throws -> FileRegion {
    var file = try MemoryFile(name: "test")
    try bytes.withUnsafeBytes { try file.append($0) }
    return try file.sealed()
  }
}
