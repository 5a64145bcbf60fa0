// FileReader: reads files for the manager on threads that may block on a disk.

import Glibc
import Model
import Platform
import Telemetry

/// Reads files on dedicated threads. A blocking read in a task would occupy a thread of the
/// cooperative pool.
struct FileReader: Sendable {
  private let threads: BlockingThreads
  private let log: Log

  init(threads: BlockingThreads, log: Log) {
    self.threads = threads
    self.log = log
  }

  /// Returns a copy of the first `limit` bytes of a file, or `nil` if they cannot be read in time.
  ///
  /// The file is never mapped: reading a mapped page of a truncated file raises SIGBUS.
  func bytes(of file: FileRegion, upTo limit: Int = .max) async -> ImageBytes? {
    do throws(BlockingFailure) {
      return try await threads.value { file.beginning(upTo: limit) }
    } catch {
      log.warning("a file was not read in time", ["reason": .string("\(error)")])
      return nil
    }
  }

  /// Returns a variant under another key, or `nil` if its bytes cannot be read into memory.
  ///
  /// - Parameter freshness: the freshness of the copy; `nil`: that of the variant.
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
  /// Returns up to `limit` bytes from the start, or `nil` if they cannot be read. Blocks on the
  /// disk.
  fileprivate func beginning(upTo limit: Int) -> ImageBytes? {
    let beginning = FileRegion(
      owning: fcntl(descriptor, F_DUPFD_CLOEXEC, 0), offset: offset, count: min(count, limit))
    return try? ImageBytes(contentsOf: beginning, mayMap: false)
  }
}
