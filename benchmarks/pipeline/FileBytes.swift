// FileBytes: a whole file as bytes, read through a mapping, as a worker has its source.

import Glibc

/// A file's bytes, for as long as this lives.
struct FileBytes: ~Copyable {
  /// What a system call had against it.
  struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ path: String) { description = "\(path): \(String(cString: strerror(errno)))" }
  }

  let bytes: UnsafeRawBufferPointer

  /// Maps a file that is not empty.
  init(path: String) throws(Failure) {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw Failure(path) }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0 else { throw Failure(path) }
    let count = Int(status.st_size)
    guard let start = mmap(nil, count, PROT_READ, MAP_PRIVATE, file, 0), start != MAP_FAILED else {
      throw Failure(path)
    }
    bytes = UnsafeRawBufferPointer(start: start, count: count)
  }

  deinit { munmap(UnsafeMutableRawPointer(mutating: bytes.baseAddress), bytes.count) }

  /// Writes a file anew.
  static func write(_ content: [UInt8], to path: String) throws(Failure) {
    guard let file = fopen(path, "w") else { throw Failure(path) }
    let written = fwrite(content, 1, content.count, file)
    guard fclose(file) == 0, written == content.count else { throw Failure(path) }
  }
}
