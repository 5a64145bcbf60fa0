// FileReading: bytes of files for the manager, read on threads that may wait for a disk.

import Glibc
import Model
import Platform

extension ImageManager {
  /// The bytes of a file, or the first ones, copied; `nil` where they cannot be read, or not in time.
  ///
  /// Never mapped: a file in a folder may be cut, and whoever reads what is gone is ended by the kernel.
  func bytes(of file: FileRegion, upTo limit: Int = .max) async -> ImageBytes? {
    do throws(BlockingFailure) {
      return try await files.value { file.beginning(upTo: limit) }
    } catch {
      log.warning("a file was not read in time", ["reason": .string("\(error)")])
      return nil
    }
  }

  /// A variant under another key; `nil` where its bytes cannot be had in memory.
  func copy(
    of variant: Variant, as key: CacheKey, freshness: Freshness? = nil
  ) async -> Variant? {
    let found: ImageBytes? =
      switch variant.body {
      case .memory(let bytes): bytes
      case .file(let file): await bytes(of: file)
      }
    var info = variant.info
    if let freshness { info.freshness = freshness }
    return found.map { Variant(key: key, info: info, body: .memory($0)) }
  }
}

extension FileRegion {
  /// The first bytes, as many as there are up to `limit`; `nil` where they cannot be read. Waits for the disk.
  fileprivate func beginning(upTo limit: Int) -> ImageBytes? {
    let beginning = FileRegion(
      owning: fcntl(descriptor, F_DUPFD_CLOEXEC, 0), offset: offset, count: min(count, limit))
    return try? ImageBytes(contentsOf: beginning, mayMap: false)
  }
}
