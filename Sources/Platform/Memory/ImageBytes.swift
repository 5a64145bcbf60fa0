// ImageBytes: immutable bytes in memory, copied or mapped.

import Glibc

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
  /// Bytes of memory that the object holds, beside itself; more than `count` for a part.
  public let heldBytes: Int
  /// What exists as long as this object: the lease of the bytes, or whose part they are.
  private let keeper: AnyObject?
  /// The number of bytes of the allocation or mapping in front of `baseAddress`.
  private let offset: UInt32
  /// Where the bytes are.
  private enum Place { case allocated, mapped, others }
  private let place: Place

  /// The minimum size, in bytes, of a file that is mapped instead of copied.
  public static let mappingThreshold = 1 << 20

  /// Copies bytes.
  ///
  /// - Parameter lease: what the copy counts against; `nil` for nothing.
  public init(copying bytes: UnsafeRawBufferPointer, lease: ByteLease? = nil) {
    let memory = UnsafeMutableRawPointer.allocate(byteCount: max(bytes.count, 1), alignment: 16)
    if let first = bytes.baseAddress { memory.copyMemory(from: first, byteCount: bytes.count) }
    baseAddress = UnsafeRawPointer(memory)
    count = bytes.count
    heldBytes = bytes.count
    offset = 0
    place = .allocated
    keeper = lease
  }

  /// Takes a part of other bytes, which it keeps.
  ///
  /// - Parameter range: positions in `whole`.
  public init(_ range: Range<Int>, of whole: ImageBytes) {
    precondition(range.lowerBound >= 0 && range.upperBound <= whole.count)
    baseAddress = whole.baseAddress + range.lowerBound
    count = range.count
    heldBytes = 0
    offset = 0
    place = .others
    keeper = whole
  }

  /// Allocates `capacity` bytes, at least 1, and keeps the part of them that `fill` returns. The
  /// result is `nil` if `fill` returns `nil`.
  ///
  /// - Parameters:
  ///   - lease: what the bytes count against; `nil` for nothing.
  ///   - fill: writes the bytes. The returned range must lie in the buffer, start in its first 4
  ///     GiB and be initialized.
  public init?(
    capacity: Int, lease: ByteLease?, filling fill: (UnsafeMutableRawBufferPointer) -> Range<Int>?
  ) {
    let memory = UnsafeMutableRawPointer.allocate(byteCount: max(capacity, 1), alignment: 16)
    guard let kept = fill(UnsafeMutableRawBufferPointer(start: memory, count: capacity)) else {
      memory.deallocate()
      return nil
    }
    precondition(kept.lowerBound >= 0 && kept.upperBound <= capacity)
    baseAddress = UnsafeRawPointer(memory + kept.lowerBound)
    count = kept.count
    heldBytes = capacity
    offset = UInt32(kept.lowerBound)
    place = .allocated
    keeper = lease
  }

  /// Loads a file's bytes into memory. The region may be closed afterwards.
  ///
  /// - Parameter mayMap: whether large files are mapped instead of copied. Reading a mapped file
  ///   that was truncated, or whose disk fails, raises SIGBUS. Sealed memory files are safe to map;
  ///   files in a folder are not.
  /// - Parameter lease: what the bytes count against; `nil` for nothing.
  /// - Throws: if the file cannot be read; `EIO` if it is shorter than the region.
  public init(
    contentsOf region: FileRegion, mayMap: Bool = true, lease: ByteLease? = nil
  ) throws(SystemError) {
    if mayMap && region.count >= Self.mappingThreshold {
      let slack = region.offset % Int(getpagesize())
      let length = region.count + slack
      var status = stat()
      guard fstat(region.descriptor, &status) == 0 else { throw SystemError() }
      guard Int(status.st_size) >= region.offset + region.count else { throw SystemError(EIO) }
      guard
        let start = mmap(
          nil, length, PROT_READ, MAP_PRIVATE, region.descriptor, region.offset - slack),
        start != MAP_FAILED
      else { throw SystemError() }
      baseAddress = UnsafeRawPointer(start) + slack
      offset = UInt32(slack)
      place = .mapped
    } else {
      let memory = UnsafeMutableRawPointer.allocate(byteCount: max(region.count, 1), alignment: 16)
      do throws(SystemError) {
        let room = UnsafeMutableRawBufferPointer(start: memory, count: region.count)
        _ = try region.read(region.count, into: room)
      } catch {
        memory.deallocate()
        throw error
      }
      baseAddress = UnsafeRawPointer(memory)
      offset = 0
      place = .allocated
    }
    count = region.count
    heldBytes = region.count
    keeper = lease
  }

  /// Copies up to `limit` bytes from the start of a region.
  ///
  /// - Parameter lease: what the copy counts against; `nil` for nothing.
  /// - Throws: if the file cannot be read.
  public convenience init(
    copyingUpTo limit: Int, of region: FileRegion, lease: ByteLease? = nil
  ) throws(SystemError) {
    try self.init(
      contentsOf: region.part(0..<min(region.count, limit)), mayMap: false, lease: lease)
  }

  deinit {
    let start = UnsafeMutableRawPointer(mutating: baseAddress - Int(offset))
    switch place {
    case .allocated: start.deallocate()
    case .mapped: munmap(start, count + Int(offset))
    case .others: break
    }
  }

  /// Calls `body` with the bytes, which are valid during the call.
  public func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows
    -> Result
  {
    try body(UnsafeRawBufferPointer(start: baseAddress, count: count))
  }
}
