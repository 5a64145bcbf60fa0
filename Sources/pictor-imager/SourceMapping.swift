// SourceMapping: maps the bytes of a source into a worker's memory.

import Core
import Glibc

/// A mapped part of a file, unmapped at the end of its life.
struct SourceMapping: ~Copyable {
  private let mapping: UnsafeMutableRawPointer
  private let length: Int
  /// The bytes; valid as long as the mapping.
  let bytes: UnsafeRawBufferPointer

  /// Maps `count` bytes from `offset`; both must be at least 0.
  ///
  /// If the file is truncated while it is mapped, SIGBUS ends the worker. The worker process
  /// isolates this.
  init(of file: borrowing OwnedDescriptor, offset: Int, count: Int) throws(ImageError) {
    var status = stat()
    guard fstat(file.value, &status) == 0 else {
      throw .internal(detail: "cannot look at the source: \(errnoText())")
    }
    guard offset <= Int(status.st_size), count <= Int(status.st_size) - offset else {
      throw .internal(
        detail: "the source has \(status.st_size) bytes, not \(count) from \(offset) on")
    }
    guard count > 0 else { throw .unsupportedFormat(detail: "no bytes") }
    let slack = offset % Int(getpagesize())
    let length = count + slack
    guard let start = mmap(nil, length, PROT_READ, MAP_PRIVATE, file.value, off_t(offset - slack)),
      start != MAP_FAILED
    else { throw .internal(detail: "cannot map the source: \(errnoText())") }
    mapping = start
    self.length = length
    bytes = UnsafeRawBufferPointer(start: start + slack, count: count)
  }

  deinit { munmap(mapping, length) }
}
