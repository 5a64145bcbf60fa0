// ByteStorage: owns bytes in files (`FileRegion`) and in memory (`ImageBytes`).

import Glibc

/// A region of an open file. Owns the descriptor and closes it with the last reference.
///
/// The bytes of a region do not change: the disk tier replaces files by renaming, and memory files
/// are sealed. The exception is a local source, which its owner may change. So readers must
/// validate its bytes on every read.
public final class FileRegion: Sendable {
  /// The open descriptor, for reading only.
  public let descriptor: CInt
  /// The offset of the first byte in the file.
  public let offset: Int
  /// The number of bytes.
  public let count: Int

  /// Takes ownership of `descriptor`.
  public init(owning descriptor: CInt, offset: Int = 0, count: Int) {
    (self.descriptor, self.offset, self.count) = (descriptor, offset, count)
  }

  deinit { close(descriptor) }
}

/// Immutable bytes in memory: copied if few, mapped if many and mapping is safe.
///
/// Each mapping counts against `vm.max_map_count` (65,530 by default), so only large bodies are
/// mapped.
public final class ImageBytes: @unchecked Sendable {
  // Sound as Sendable: the memory is written before init returns and only read afterwards.

  /// The address of the first byte, valid as long as this object.
  public let baseAddress: UnsafeRawPointer
  /// The number of bytes.
  public let count: Int
  /// The mapping for `munmap`; `nil` if the bytes were copied.
  private let mapping: UnsafeMutableRawBufferPointer?

  /// The minimum size, in bytes, of a file that is mapped instead of copied.
  public static let mappingThreshold = 1 << 20

  /// Copies bytes.
  public init(copying bytes: UnsafeRawBufferPointer) {
    let memory = UnsafeMutableRawPointer.allocate(byteCount: max(bytes.count, 1), alignment: 16)
    if let first = bytes.baseAddress { memory.copyMemory(from: first, byteCount: bytes.count) }
    (baseAddress, count, mapping) = (UnsafeRawPointer(memory), bytes.count, nil)
  }

  /// Loads a file's bytes into memory. The region may be closed afterwards.
  ///
  /// - Parameter mayMap: whether large files are mapped instead of copied. Reading a mapped file
  ///   that was truncated, or whose disk fails, raises SIGBUS. Sealed memory files are safe to map;
  ///   files in a folder are not.
  /// - Throws: `ImageError.internal` if the file is shorter than the region or cannot be read.
  public init(contentsOf region: FileRegion, mayMap: Bool = true) throws(ImageError) {
    if mayMap && region.count >= Self.mappingThreshold {
      let slack = region.offset % Int(getpagesize())
      let length = region.count + slack
      var status = stat()
      guard fstat(region.descriptor, &status) == 0,
        Int(status.st_size) >= region.offset + region.count,
        let start = mmap(
          nil, length, PROT_READ, MAP_PRIVATE, region.descriptor, region.offset - slack),
        start != MAP_FAILED
      else { throw .internal(detail: "cannot map \(region.count) bytes: \(errnoText())") }
      baseAddress = UnsafeRawPointer(start) + slack
      mapping = UnsafeMutableRawBufferPointer(start: start, count: length)
    } else {
      let memory = UnsafeMutableRawPointer.allocate(byteCount: max(region.count, 1), alignment: 16)
      var done = 0
      while done < region.count {
        let read = pread(
          region.descriptor, memory + done, region.count - done, region.offset + done)
        if read < 0 && errno == EINTR { continue }
        guard read > 0 else {
          memory.deallocate()
          throw .internal(detail: "cannot read \(region.count) bytes: \(errnoText())")
        }
        done += read
      }
      (baseAddress, mapping) = (UnsafeRawPointer(memory), nil)
    }
    count = region.count
  }

  deinit {
    if let mapping {
      munmap(mapping.baseAddress, mapping.count)
    } else {
      UnsafeMutableRawPointer(mutating: baseAddress).deallocate()
    }
  }

  /// Calls `body` with the bytes, which are valid during the call.
  public func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows
    -> Result
  {
    try body(UnsafeRawBufferPointer(start: baseAddress, count: count))
  }
}

/// Returns the text of an errno value for log lines: `No such file or directory (2)`.
public func errnoText(_ code: CInt = errno) -> String {
  "\(String(cString: strerror(code))) (\(code))"
}
