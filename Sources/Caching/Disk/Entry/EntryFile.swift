// EntryFile: writes the file of one entry and reads it back.

import CLinux
import Glibc
import Model
import Platform

/// Reading and writing the file of one entry, without knowledge of its path or of the index.
enum EntryFile {
  /// The result of a read.
  enum Outcome {
    /// The file is intact. The number is the `FileStamp.fingerprint` of its state, 0 if unknown.
    case found(DiskEntry, verified: UInt32)
    /// There is no such file.
    case absent
    /// The file with this inode number is damaged or belongs to another key.
    case damaged(inode: ino_t)
    /// The file with this inode number was purged after its load began.
    case purged(inode: ino_t)
    /// A system call failed.
    case failed(SystemError)
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

  /// Reads the entry of `key`.
  static func read(_ path: String, key: CacheKey, options: ReadOptions) -> Outcome {
    do {
      guard let (file, inode) = try open(path) else { return .absent }
      let length = file.count
      if let access = options.access { EntryTimes.touch(file.descriptor, access: access) }
      // After the access time, which changes it, and before the bytes: a change during the read
      // leaves another one for the next read.
      let fingerprint = FileStamp(of: file.descriptor)?.fingerprint ?? 0
      return try withUnsafeTemporaryAllocation(byteCount: chunk, alignment: 16) { buffer in
        let first = try fill(buffer, from: file, at: 0, count: min(length, chunk))
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
        return .found(entry, verified: fingerprint)
      }
    } catch let error as SystemError {
      return .failed(error)
    } catch {
      return .failed(SystemError(EIO))
    }
  }

  /// An entry to be written, with its encoded metadata.
  struct Draft {
    fileprivate let entry: DiskEntry
    fileprivate let kind: EntryKind
    fileprivate let metadata: [UInt8]
    fileprivate let bodyOffset: Int

    init(_ entry: DiskEntry) {
      self.entry = entry
      let content: EntryMetadata.Content
      switch entry {
      case .variant(let variant):
        kind = .variant
        content = .variant(variant.info)
      case .source(let source):
        kind = .source
        content = .source(
          source.origin, source.freshness, version: source.version,
          generation: source.generation)
      }
      metadata = EntryMetadata(key: entry.key.text, content: content).encoded()
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
      kind: draft.kind, metadata: draft.metadata, bodyLength: draft.entry.bodyLength,
      bodyChecksum: checksum)
    var result: Result<Void, SystemError> = .success(())
    prefix.withUnsafeBytes { bytes in
      result = Result { () throws(SystemError) in try put(bytes, to: descriptor, at: 0) }
    }
    try result.get()
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
        header.metadata(in: try fill($0, from: file, at: 0, count: header.bodyOffset))
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
        let part = try fill(
          buffer, from: region, at: region.offset + done, count: min(region.count - done, chunk))
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
      let part = try fill(
        buffer, from: file, at: file.offset + done, count: min(file.count - done, buffer.count))
      checksum = EntryHeader.checksum(part, after: checksum)
      try put(part, to: descriptor, at: offset + done)
      done += part.count
    }
    return checksum
  }

  /// Reads exactly `count` bytes.
  ///
  /// - Throws: `EIO` if the file ends earlier.
  static func fill(
    _ buffer: UnsafeMutableRawBufferPointer, from file: FileRegion, at offset: Int, count: Int
  ) throws(SystemError) -> UnsafeRawBufferPointer {
    guard let start = buffer.baseAddress, count <= buffer.count else { throw SystemError(EINVAL) }
    var done = 0
    while done < count {
      let read = pread(file.descriptor, start + done, count - done, offset + done)
      if read < 0 && errno == EINTR { continue }
      guard read > 0 else { throw read < 0 ? SystemError() : SystemError(EIO) }
      done += read
    }
    return UnsafeRawBufferPointer(start: start, count: count)
  }

  static func put(_ bytes: UnsafeRawBufferPointer, to descriptor: CInt, at offset: Int)
    throws(SystemError)
  {
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
    var status = stat()
    guard fstat(descriptor, &status) == 0 else {
      let error = SystemError()
      close(descriptor)
      throw error
    }
    return (FileRegion(owning: descriptor, count: Int(status.st_size)), status.st_ino)
  }
}

extension DiskEntry {
  fileprivate var body: Variant.Body {
    switch self {
    case .variant(let variant): variant.body
    case .source(let source): .file(source.file)
    }
  }
}
