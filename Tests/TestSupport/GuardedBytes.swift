// GuardedBytes: bytes in front of a page that cannot be read.

import Glibc

/// A copy of bytes that ends where readable memory ends: reading past it ends the process, without
/// any sanitizer.
public struct GuardedBytes: ~Copyable {
  private let memory: UnsafeMutableRawPointer
  private let length: Int
  private let bytes: UnsafeRawBufferPointer

  /// Copies bytes.
  ///
  /// - Throws: `OriginError` if there is no memory.
  public init(_ content: [UInt8]) throws {
    let page = Int(sysconf(CInt(_SC_PAGESIZE)))
    let room = (content.count + page - 1) / page * page
    length = room + page
    guard
      let memory = mmap(nil, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
      memory != MAP_FAILED, mprotect(memory + room, page, PROT_NONE) == 0
    else { throw OriginError(description: "mmap: \(String(cString: strerror(errno)))") }
    self.memory = memory
    let start = memory + (room - content.count)
    content.withUnsafeBytes { bytes in
      if let first = bytes.baseAddress { start.copyMemory(from: first, byteCount: bytes.count) }
    }
    bytes = UnsafeRawBufferPointer(start: start, count: content.count)
  }

  deinit { munmap(memory, length) }

  /// Passes the bytes, which are valid during the call.
  public func withBytes<Result>(
    _ body: (UnsafeRawBufferPointer) throws -> Result
  ) rethrows -> Result {
    try body(bytes)
  }
}
