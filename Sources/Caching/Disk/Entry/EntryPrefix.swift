// EntryPrefix: the header and the metadata of an entry's file, read without the body.

import Glibc
import Model
import Platform

/// The part of an entry's file before the body.
struct EntryPrefix {
  /// The result of a read.
  enum Outcome {
    /// The prefix is intact. The body is not checked.
    case found(EntryPrefix)
    /// There is no such file.
    case absent
    /// The file with this inode number is damaged.
    case damaged(inode: ino_t)
    /// A system call failed.
    case failed(SystemError)
  }

  /// The entry's key.
  let key: CacheKey
  let content: EntryMetadata.Content
  /// The freshness of the entry.
  var freshness: Freshness { content.freshness }
  /// The purge generation at the start of the load; see `PurgeList`.
  var generation: Int { content.generation }
  /// The length of the body in bytes.
  let bodyLength: Int
  /// The inode number, which tells the file from one renamed to the same path later.
  let inode: ino_t

  /// Bytes of the first read. Keys and metadata usually have a few hundred.
  private static let firstRead = 4_096

  /// Reads the start of a file. The access time does not change if this process owns the file.
  static func read(_ path: String) -> Outcome {
    do {
      guard let (file, inode) = try EntryFile.open(path) else { return .absent }
      // Read-ahead would load the body.
      posix_fadvise(file.descriptor, 0, 0, POSIX_FADV_RANDOM)
      return try withUnsafeTemporaryAllocation(byteCount: firstRead, alignment: 16) { buffer in
        let first = try EntryFile.fill(buffer, from: file, at: 0, count: min(file.count, firstRead))
        guard let (header, metadata) = try EntryFile.parsePrefix(first, of: file),
          header.fileLength == file.count
        else { return .damaged(inode: inode) }
        return .found(EntryPrefix(header, metadata: metadata, inode: inode))
      }
    } catch let error as SystemError {
      return .failed(error)
    } catch {
      return .failed(SystemError(EIO))
    }
  }

  private init(_ header: EntryHeader, metadata: EntryMetadata, inode: ino_t) {
    key = CacheKey(text: metadata.key)
    content = metadata.content
    bodyLength = header.bodyLength
    self.inode = inode
  }
}

extension EntryMetadata.Content {
  /// The freshness of the entry.
  var freshness: Freshness {
    switch self {
    case .variant(let info): info.freshness
    case .source(_, let freshness, _, _): freshness
    }
  }

  /// The purge generation at the start of the load; see `PurgeList`.
  var generation: Int {
    switch self {
    case .variant(let info): info.generation
    case .source(_, _, _, let generation): generation
    }
  }
}
