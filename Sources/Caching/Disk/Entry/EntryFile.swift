// EntryFile: writes the file of one entry, and reads it back in whole or in part.

import CLinux
import Core
import Glibc

/// Reading and writing the file of one entry, without knowledge of its path or of the index.
enum EntryFile {
  /// The result of a read.
  enum Outcome<Found> {
    /// The file is intact, as far as it was read.
    case found(Found)
    /// There is no such file.
    case absent
    /// The file with this inode number is damaged or belongs to another key.
    case damaged(inode: ino_t)
    /// The file with this inode number was purged after its load began.
    case purged(inode: ino_t)
    /// A system call failed.
    case failed(SystemError)

    fileprivate init(_ read: () throws -> Outcome) {
      do {
        self = try read()
      } catch {
        self = .failed(error as? SystemError ?? SystemError(EIO))
      }
    }
  }

  /// The options of a read.
  struct ReadOptions {
    /// The `FileStamp.fingerprint` of the state in which this process verified the file, or wrote
    /// it; 0 for none.
    var verified: UInt32 = 0
    /// Maximum size in bytes of a variant that is read into memory.
    var promotionThreshold: Int
    /// What variants in memory count against.
    var memory: ByteBudget
    /// The access time to set on the file, if any.
    var access: UnixTime?
    /// The list of purges to check; `nil` for none.
    var purges: Purges?
  }

  /// Bytes read or written at a time. The first read covers most small entries completely.
  private static let chunk = 64 << 10

  /// Reads the entry of `key`. The number is the `FileStamp.fingerprint` of the file's state, 0 if
  /// unknown.
  static func read(
    _ path: String, key: CacheKey, options: ReadOptions
  ) -> Outcome<(entry: DiskEntry, verified: UInt32)> {
    Outcome {
      guard let (file, inode) = try open(path) else { return .absent }
      let length = file.count
      if let access = options.access { EntryTimes.touch(path, access: access) }
      // After the access time, which changes it, and before the bytes: a change during the read
      // leaves another one for the next read.
      let fingerprint = FileStamp(of: file.descriptor)?.fingerprint ?? 0
      return try withUnsafeTemporaryAllocation(byteCount: chunk, alignment: 16) { buffer in
        let first = try file.read(min(length, chunk), into: buffer)
        guard let (header, metadata) = try parsePrefix(first, of: file),
          header.fileLength == length, metadata.key == key.text
        else { return .damaged(inode: inode) }
        if let purges = options.purges, purges.covers(key, generation: metadata.content.generation)
        {
          return .purged(inode: inode)
        }
        let entry = try entry(
          key, header: header, metadata: metadata, first: first, file: file,
          options: options)
        // The second stamp follows the bytes: a write sets the times before it changes bytes.
        let isUnchanged =
          fingerprint != 0 && fingerprint == options.verified
          && FileStamp(of: file.descriptor)?.fingerprint == fingerprint
        if !isUnchanged, try checksum(of: entry, in: file, using: buffer) != header.bodyChecksum {
          return .damaged(inode: inode)
        }
        return .found((entry, fingerprint))
      }
    }
  }

  /// An entry to be written, with its encoded metadata.
  struct Draft {
    fileprivate let entry: DiskEntry
    fileprivate let metadata: [UInt8]
    fileprivate let bodyOffset: Int

    init(_ entry: DiskEntry) {
      self.entry = entry
      metadata = EntryMetadata(key: entry.key.text, content: entry.content).encoded()
      bodyOffset = EntryHeader.bodyOffset(metadataLength: metadata.count)
    }

    /// The length of the file.
    var length: Int { bodyOffset + entry.bodyLength }
  }

  /// Writes an entry to an open, empty file.
  static func write(_ draft: Draft, to descriptor: CInt) throws(SystemError) {
    guard draft.metadata.count <= EntryHeader.maximumMetadataLength else {
      throw SystemError(E2BIG)
    }
    let checksum: UInt32
    switch draft.entry.body {
    case .memory(let bytes):
      let body = UnsafeRawBufferPointer(start: bytes.baseAddress, count: bytes.count)
      checksum = EntryHeader.checksum(body)
      try put(body, to: descriptor, at: draft.bodyOffset)
    case .file(let file):
      checksum = try copy(file, to: descriptor, at: draft.bodyOffset)
    }
    let prefix = EntryHeader.prefix(
      kind: EntryKind(of: draft.entry.key), metadata: draft.metadata,
      bodyLength: draft.entry.bodyLength, bodyChecksum: checksum)
    try put(prefix, to: descriptor, at: 0)
  }

  /// Reads the header and the metadata, or returns `nil` if they are damaged. `first` holds the
  /// start of the file.
  static func parsePrefix(_ first: UnsafeRawBufferPointer, of file: FileRegion) throws
    -> (EntryHeader, EntryMetadata)?
  {
    guard let header = EntryHeader(decoding: first), header.bodyOffset <= file.count else {
      return nil
    }
    let metadata: EntryMetadata?
    if header.bodyOffset <= first.count {
      metadata = header.metadata(in: first)
    } else {
      metadata = try withUnsafeTemporaryAllocation(byteCount: header.bodyOffset, alignment: 16) {
        header.metadata(in: try file.read(header.bodyOffset, into: $0))
      }
    }
    return metadata.map { (header, $0) }
  }

  private static func entry(
    _ key: CacheKey, header: EntryHeader, metadata: EntryMetadata,
    first: UnsafeRawBufferPointer, file: FileRegion, options: ReadOptions
  ) throws -> DiskEntry {
    // The region gets its own descriptor, so that each descriptor has one owner.
    func region() throws -> FileRegion {
      let copy = fcntl(file.descriptor, F_DUPFD_CLOEXEC, 0)
      guard copy >= 0 else { throw SystemError() }
      return FileRegion(owning: copy, offset: header.bodyOffset, count: header.bodyLength)
    }
    switch metadata.content {
    case .source(let origin, let freshness, let version, let generation):
      return .source(
        Source(
          key: key, file: try region(), origin: origin, freshness: freshness, version: version,
          generation: generation))
    case .variant(let info):
      let body: Variant.Body
      guard header.bodyLength <= options.promotionThreshold,
        let lease = options.memory.lease(header.bodyLength)
      else { return .variant(Variant(key: key, info: info, body: .file(try region()))) }
      if header.fileLength <= first.count {
        let bytes = first[header.bodyOffset..<header.fileLength]
        body = .memory(ImageBytes(copying: UnsafeRawBufferPointer(rebasing: bytes), lease: lease))
      } else {
        body = .memory(try ImageBytes(contentsOf: try region(), mayMap: false, lease: lease))
      }
      return .variant(Variant(key: key, info: info, body: body))
    }
  }

  private static func checksum(
    of entry: DiskEntry, in file: FileRegion, using buffer: UnsafeMutableRawBufferPointer
  ) throws(SystemError) -> UInt32 {
    switch entry.body {
    case .memory(let bytes):
      return EntryHeader.checksum(
        UnsafeRawBufferPointer(start: bytes.baseAddress, count: bytes.count))
    case .file(let region):
      var checksum = UInt32(0)
      var done = 0
      while done < region.count {
        let part = try region.read(min(region.count - done, chunk), at: done, into: buffer)
        checksum = EntryHeader.checksum(part, after: checksum)
        done += part.count
      }
      return checksum
    }
  }

  /// Copies a file's bytes through memory. The checksum needs them anyway, so a copy in the kernel
  /// would save little.
  private static func copy(_ file: FileRegion, to descriptor: CInt, at offset: Int)
    throws(SystemError) -> UInt32
  {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4 * chunk, alignment: 16)
    defer { buffer.deallocate() }
    var checksum = UInt32(0)
    var done = 0
    while done < file.count {
      let part = try file.read(min(file.count - done, buffer.count), at: done, into: buffer)
      checksum = EntryHeader.checksum(part, after: checksum)
      try put(part, to: descriptor, at: offset + done)
      done += part.count
    }
    return checksum
  }

  static func put(_ bytes: [UInt8], to descriptor: CInt, at offset: Int) throws(SystemError) {
    try bytes.span.bytes.withUnsafeBytes { bytes throws(SystemError) in
      try put(bytes, to: descriptor, at: offset)
    }
  }

  private static func put(
    _ bytes: UnsafeRawBufferPointer, to descriptor: CInt, at offset: Int
  ) throws(SystemError) {
    guard let start = bytes.baseAddress else { return }
    var done = 0
    while done < bytes.count {
      let written = pwrite(descriptor, start + done, bytes.count - done, offset + done)
      if written < 0 && errno == EINTR { continue }
      guard written > 0 else { throw written < 0 ? SystemError() : SystemError(ENOSPC) }
      done += written
    }
  }

  /// Opens a file without changing its access time, which records when its entry was last used. For
  /// a file of another owner the system's mount options decide.
  ///
  /// - Returns: the file and its inode number; `nil` if it does not exist. The number tells the
  ///   file from one renamed to the same path later.
  static func open(_ path: String) throws(SystemError) -> (file: FileRegion, inode: ino_t)? {
    var descriptor = pictor_linux_open_noatime(path)
    if descriptor < 0 && errno == EPERM {
      descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
    }
    guard descriptor >= 0 else {
      // A symbolic link (ELOOP) is a file that cannot be read, so that a purge does not pass it by.
      guard errno == ENOENT || errno == ENOTDIR else { throw SystemError() }
      return nil
    }
    let file = OwnedDescriptor(owning: descriptor)
    var status = stat()
    guard fstat(file.value, &status) == 0 else { throw SystemError() }
    return (FileRegion(owning: file.release(), count: Int(status.st_size)), status.st_ino)
  }
}

extension EntryFile {
  /// The result of reading a file that was kept open.
  enum OpenRead {
    case found(Variant)
    /// The file is no longer the one that was verified.
    case changed
    /// The kernel has not all of it cached, memory has no room, or the caller rejects it.
    case unavailable
  }

  /// Reads the body of a file that was kept open, if the kernel has all of it cached and the file
  /// has not changed since its verification.
  static func readAtOnce(
    _ open: OpenEntry, memory: ByteBudget, where isWanted: (VariantInfo) -> Bool
  ) -> OpenRead {
    guard isWanted(open.info), let lease = memory.lease(open.body.count) else {
      return .unavailable
    }
    let bytes = ImageBytes(capacity: open.body.count, lease: lease) { buffer in
      let count = pictor_linux_read_cached(
        open.file.descriptor, buffer.baseAddress, buffer.count, open.body.lowerBound)
      return count == buffer.count ? 0..<count : nil
    }
    // Follows the bytes: a write sets the times before the bytes, and an unlink the change time.
    guard FileStamp(of: open.file.descriptor)?.fingerprint == open.fingerprint else {
      return .changed
    }
    return bytes.map { .found(Variant(key: open.key, info: open.info, body: .memory($0))) }
      ?? .unavailable
  }

  /// Reads a variant whose file has at most `limit` bytes, if the kernel has all of it cached. The
  /// path comes from the directory cache (openat2(2), `RESOLVE_CACHED`, Linux 5.12), the bytes from
  /// the page cache (preadv2(2), `RWF_NOWAIT`).
  ///
  /// - Parameters:
  ///   - path: The path, relative to `root`.
  ///   - root: An open folder.
  ///   - verified: the fingerprint of the file's verified state; 0 for none.
  ///   - memory: What the file's bytes count against. Without room for them, the result is `nil`.
  ///   - isWanted: Called before the body is checked.
  /// - Returns: the variant with its file, whose fingerprint is from before the bytes were read;
  ///   `nil` if the file is not cached or is damaged, or if the system does not support these
  ///   calls. `read` then finds out which.
  static func readAtOnce(
    _ path: String, in root: CInt, key: CacheKey, limit: Int, verified: UInt32,
    memory: ByteBudget, where isWanted: (VariantInfo) -> Bool
  ) -> (variant: Variant, file: OpenEntry)? {
    let descriptor = pictor_linux_open_cached(root, path)
    guard descriptor >= 0 else { return nil }
    // Taken before the bytes are read: a change during the read leaves another stamp for later.
    let state = FileStamp(of: descriptor)
    // Closes the descriptor.
    let whole = FileRegion(owning: descriptor, count: state?.size ?? 0)
    guard let stamp = state, stamp.size <= limit, let lease = memory.lease(stamp.size) else {
      return nil
    }
    var found: (info: VariantInfo, body: Range<Int>)?
    let bytes = ImageBytes(capacity: stamp.size, lease: lease) { buffer in
      let count = pictor_linux_read_cached(descriptor, buffer.baseAddress, buffer.count, 0)
      guard count == stamp.size else { return nil }
      let file = UnsafeRawBufferPointer(buffer)
      // Taken again: a write sets the times first, so these bytes are of the known state.
      let isKnown =
        verified == stamp.fingerprint && FileStamp(of: descriptor)?.fingerprint == verified
      // Rejects files that are longer or shorter than their header says.
      guard let header = EntryHeader(decoding: file), header.fileLength == count,
        let metadata = header.metadata(in: file, isKnown: isKnown), metadata.key == key.text,
        case .variant(let info) = metadata.content, isWanted(info)
      else { return nil }
      let body = header.bodyOffset..<count
      guard
        isKnown
          || EntryHeader.checksum(UnsafeRawBufferPointer(rebasing: file[body]))
            == header.bodyChecksum
      else { return nil }
      found = (info, body)
      return body
    }
    guard let bytes, let found else { return nil }
    let open = OpenEntry(
      key: key, info: found.info, file: whole, body: found.body, fingerprint: stamp.fingerprint)
    return (Variant(key: key, info: found.info, body: .memory(bytes)), open)
  }

  /// Maximum length of such a file in bytes. A longer file would delay the event loop's other
  /// clients.
  static let longestAtOnce = 128 << 10
}

/// The part of an entry's file before the body.
struct EntryPrefix {
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
  static func read(_ path: String) -> EntryFile.Outcome<EntryPrefix> {
    EntryFile.Outcome {
      guard let (file, inode) = try EntryFile.open(path) else { return .absent }
      // Read-ahead would load the body.
      posix_fadvise(file.descriptor, 0, 0, POSIX_FADV_RANDOM)
      return try withUnsafeTemporaryAllocation(byteCount: firstRead, alignment: 16) { buffer in
        let first = try file.read(min(file.count, firstRead), into: buffer)
        guard let (header, metadata) = try EntryFile.parsePrefix(first, of: file),
          header.fileLength == file.count
        else { return .damaged(inode: inode) }
        return .found(
          EntryPrefix(
            key: CacheKey(text: metadata.key), content: metadata.content,
            bodyLength: header.bodyLength, inode: inode))
      }
    }
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
