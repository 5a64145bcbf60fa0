// FileReader: reads files for the manager on threads that may block on a disk.

import Core
import Glibc

/// Reads files on dedicated threads. A blocking read in a task would occupy a thread of the
/// cooperative pool.
struct FileReader: Sendable {
  let threads: BlockingThreads
  let storage: VariantStorage
  let log: Log

  /// Returns a copy of a file for a variant, or `nil` if it cannot be read in time or memory has no
  /// room for it.
  ///
  /// The file is never mapped: reading a mapped page of a truncated file raises SIGBUS.
  func bytes(of file: FileRegion) async -> ImageBytes? {
    guard let lease = storage.memory.lease(file.count) else { return nil }
    return await value { try? ImageBytes(copyingUpTo: .max, of: file, lease: lease) }
  }

  /// Returns a copy of a file to look at, and the body of a variant with these bytes: the copy, or
  /// the file if memory has no room. `nil` if the file cannot be read in time.
  func bytesAndBody(of file: FileRegion) async -> (bytes: ImageBytes, body: Variant.Body)? {
    let lease = storage.memory.lease(file.count)
    guard let bytes = await value({ try? ImageBytes(copyingUpTo: .max, of: file, lease: lease) })
    else { return nil }
    return (bytes, lease == nil ? .file(await sendable(file)) : .memory(bytes))
  }

  /// Returns a copy of the first `limit` bytes of a file, or `nil` if they cannot be read in time.
  /// It takes no lease: it is small and is dropped at once, and without it the answer would depend
  /// on how much memory is left.
  func beginning(of file: FileRegion, upTo limit: Int) async -> ImageBytes? {
    await value { try? ImageBytes(copyingUpTo: limit, of: file) }
  }

  /// Returns the file from which a source is sent as it is. A large one in memory is copied to a
  /// file without a name, so that slow readers do not hold memory.
  func sendable(_ file: FileRegion) async -> FileRegion {
    guard file.isInMemory, file.count > storage.maximumInMemory else { return file }
    return await value { storage.inFile(file) } ?? file
  }

  private func value<Value: Sendable>(_ body: @escaping @Sendable () -> Value?) async -> Value? {
    do throws(BlockingFailure) {
      return try await threads.value { body() }
    } catch {
      log.warning("reading a file exceeded its deadline", fields: ["reason": .string("\(error)")])
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
