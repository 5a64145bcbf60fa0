// Variant+File: passes the bytes of a variant to an imaging worker.

import Model
import Platform

extension Variant {
  /// The variant's bytes as a file for an imaging worker, or `nil` if no memory is available.
  func file(_ storage: VariantStorage) -> FileRegion? {
    switch body {
    case .file(let file): return file
    case .memory(let bytes):
      guard let lease = storage.memory.lease(bytes.count),
        var file = try? MemoryFile(name: "pictor-variant")
      else { return nil }
      do {
        try bytes.withUnsafeBytes { try file.append($0) }
        return try file.sealed(lease: lease)
      } catch {
        return nil
      }
    }
  }
}
