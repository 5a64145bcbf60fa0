// BodyFile: a body on its way in, in a memory file that nobody can change once it is whole.

import CCurl
import Glibc
import Model

/// A memfd being filled; its one owner until it is handed out, sealed, as a `FileRegion`.
struct BodyFile: ~Copyable {
  private let descriptor: CInt
  /// Bytes written so far.
  private(set) var count = 0

  /// - Throws: `ImageError.internal` when there are no descriptors left.
  init() throws(ImageError) {
    descriptor = pictor_curl_memory_file("pictor-body")
    guard descriptor >= 0 else { throw .internal(detail: "memfd_create: \(errnoText())") }
  }

  deinit { close(descriptor) }

  /// Writes all of `bytes` behind those already there.
  mutating func append(_ bytes: UnsafeRawBufferPointer) throws(ImageError) {
    var rest = bytes
    while let start = rest.baseAddress, !rest.isEmpty {
      let written = write(descriptor, start, rest.count)
      if written < 0 && errno == EINTR { continue }
      guard written > 0 else { throw .internal(detail: "memory file: \(errnoText())") }
      count += written
      rest = UnsafeRawBufferPointer(rebasing: rest[written...])
    }
  }

  /// The whole body. Workers map it, so neither its bytes nor its length may change under them.
  consuming func sealed() throws(ImageError) -> FileRegion {
    guard pictor_curl_seal_memory_file(descriptor) == 0 else {
      let text = errnoText()
      _ = consume self
      throw .internal(detail: "F_ADD_SEALS: \(text)")
    }
    let region = FileRegion(owning: descriptor, count: count)
    discard self
    return region
  }
}
