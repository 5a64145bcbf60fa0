// FileRegion and ImageBytes: who owns bytes in a file and bytes in memory.

import Glibc

/// Bytes of an open file: the one owner of its descriptor, which is closed with the last reference.
///
/// The bytes are not changed while a region of them exists: files of the disk tier are replaced by renaming, memory
/// files are sealed. A local source may be changed by its owner all the same, so nobody may trust its bytes twice.
public final class FileRegion: Sendable {
  /// The open descriptor; readable, never written through.
  public let descriptor: CInt
  /// Where the bytes start in the file.
  public let offset: Int
  /// How many bytes there are.
  public let count: Int

  /// Takes over `descriptor`.
  public init(owning descriptor: CInt, offset: Int = 0, count: Int) {
    (self.descriptor, self.offset, self.count) = (descriptor, offset, count)
  }

  deinit { close(descriptor) }
}

/// Bytes in memory that never change: copied when few, mapped when many where that is safe, released with the last
/// reference.
///
/// Each mapping counts against `vm.max_map_count` (65,530 by default), so only large bodies are mapped.
public final class ImageBytes: @unchecked Sendable {
  // Sound as Sendable: the memory is written before init returns and only read afterwards.

  /// Address of the first byte; valid as long as this object.
  public let baseAddress: UnsafeRawPointer
  /// How many bytes there are.
  public let count: Int
  /// What `munmap` is to be given; `nil` where the bytes were copied.
  private let mapping: UnsafeMutableRawBufferPointer?

  /// From this many bytes on, a file is mapped and not copied.
  public static let mappingThreshold = 1 << 20

  /// Copies bytes.
  public init(copying bytes: UnsafeRawBufferPointer) {
    let memory = UnsafeMutableRawPointer.allocate(byteCount: max(bytes.count, 1), alignment: 16)
    if let first = bytes.baseAddress { memory.copyMemory(from: first, byteCount: bytes.count) }
    (baseAddress, count, mapping) = (UnsafeRawPointer(memory), bytes.count, nil)
  }

  /// Brings a file's bytes into memory. The region may be closed afterwards.
  ///
  /// - Parameter mayMap: Whether many bytes are mapped; else they are copied, too. A mapping of a file that is
  ///   shortened later, or on a disk that fails, ends the process at the next read: memory files that are sealed are
  ///   safe, files in a folder are not.
  /// - Throws: `ImageError.internal` when the file is shorter than the region says, or cannot be read.
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

  /// The bytes, for as long as the closure runs.
  public func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows
    -> Result
  {
    try body(UnsafeRawBufferPointer(start: baseAddress, count: count))
  }
}

/// What the last failed C call said, for log lines: `No such file or directory (2)`.
public func errnoText(_ code: CInt = errno) -> String {
  "\(String(cString: strerror(code))) (\(code))"
}
