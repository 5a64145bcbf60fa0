// SourceMapping: a source's bytes as a worker sees them.

import Glibc
import ImagingWire
import Model
import Platform

/// Part of a file in memory, unmapped at its end.
struct SourceMapping: ~Copyable {
  private let mapping: UnsafeMutableRawPointer
  private let length: Int
  /// The bytes; valid as long as this.
  let bytes: UnsafeRawBufferPointer

  /// Maps `count` bytes from `offset` on, neither of them negative.
  ///
  /// A file that is shortened while it is mapped ends the worker (SIGBUS), which is what workers are for.
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
    (mapping, self.length) = (start, length)
    bytes = UnsafeRawBufferPointer(start: start + slack, count: count)
  }

  deinit { munmap(mapping, length) }
}
