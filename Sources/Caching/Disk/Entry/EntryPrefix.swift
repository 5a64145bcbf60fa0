// EntryPrefix: what an entry's file says about the entry, read without its body.

import Glibc
import Model
import Platform

/// What stands before the body in an entry's file.
struct EntryPrefix {
  /// What reading it came to.
  enum Outcome {
    /// Whole; the body may not be.
    case found(EntryPrefix)
    /// There is no such file.
    case absent
    /// The file with this number is not what was written.
    case damaged(inode: ino_t)
    /// The system said no.
    case failed(SystemError)
  }

  /// The entry's key.
  let key: CacheKey
  let freshness: Freshness
  /// The generation of its loading; see `PurgeList`.
  let generation: Int
  /// Bytes of the body.
  let bodyLength: Int
  /// The file's number, which tells it from what may be renamed to its place.
  let inode: ino_t

  /// Bytes read at first; keys and metadata are a few hundred as a rule.
  private static let firstRead = 4_096

  /// Reads the beginning of a file; its access time stays as it is where the file is ours.
  static func read(_ path: String) -> Outcome {
    do {
      guard let (file, inode) = try EntryFile.open(path) else { return .absent }
      // Reading ahead would bring in the body.
      posix_fadvise(file.descriptor, 0, 0, POSIX_FADV_RANDOM)
      return try withUnsafeTemporaryAllocation(byteCount: firstRead, alignment: 16) { buffer in
        let first = try EntryFile.fill(buffer, from: file, at: 0, count: min(file.count, firstRead))
        guard let (header, metadata) = try EntryFile.opening(first, of: file),
          header.fileLength == file.count
        else { return .damaged(inode: inode) }
        return .found(EntryPrefix(header, metadata, inode: inode))
      }
    } catch let error as SystemError {
      return .failed(error)
    } catch {
      return .failed(SystemError(EIO))
    }
  }

  private init(_ header: EntryHeader, _ metadata: EntryMetadata, inode: ino_t) {
    key = CacheKey(text: metadata.key)
    (freshness, generation) = (metadata.freshness, metadata.generation)
    (bodyLength, self.inode) = (header.bodyLength, inode)
  }
}

extension EntryMetadata {
  /// How long the entry may be served unasked.
  var freshness: Freshness {
    switch content {
    case .variant(let info): info.freshness
    case .source(_, let freshness, _, _): freshness
    }
  }

  /// The generation of the entry's loading; see `PurgeList`.
  var generation: Int {
    switch content {
    case .variant(let info): info.generation
    case .source(_, _, _, let generation): generation
    }
  }
}
