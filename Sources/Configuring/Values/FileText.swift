// FileText: reads the text of a small file.

import Glibc

/// The reason why a file cannot be read.
struct FileProblem: Error {
  /// Part of a message: `cannot be read: No such file or directory`.
  let description: String
}

/// Returns the text of a file.
///
/// - Parameters:
///   - path: the file's path.
///   - limit: maximum size in bytes; a larger file is probably the wrong one.
/// - Throws: `FileProblem` if the file cannot be read, is too large or is not UTF-8.
func textOfFile(_ path: String, limit: Int) throws(FileProblem) -> String {
  func failure() -> FileProblem {
    FileProblem(description: "cannot be read: \(String(cString: strerror(errno)))")
  }
  let descriptor = open(path, O_RDONLY | O_CLOEXEC)
  guard descriptor >= 0 else { throw failure() }
  defer { close(descriptor) }
  var bytes: [UInt8] = []
  var buffer = [UInt8](repeating: 0, count: 65_536)
  while true {
    let count = read(descriptor, &buffer, buffer.count)
    guard count >= 0 else { throw failure() }
    guard count > 0 else { break }
    bytes += buffer[..<count]
    guard bytes.count <= limit else {
      throw FileProblem(description: "has more than \(ByteSize.text(limit))")
    }
  }
  guard let text = String(validating: bytes, as: UTF8.self) else {
    throw FileProblem(description: "is not UTF-8")
  }
  return text
}
