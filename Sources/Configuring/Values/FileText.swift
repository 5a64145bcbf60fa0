// FileText: the text of a small file, or why there is none.

import Glibc

/// Why a file has no text to offer.
struct FileProblem: Error {
  /// In the words of a message: `cannot be read: No such file or directory`.
  let description: String
}

/// The text of a file.
///
/// - Parameter limit: most bytes; what has more is not the file that was meant.
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
      throw FileProblem(description: "has more than \(ByteSize.text(limit)), which is too much")
    }
  }
  guard let text = String(validating: bytes, as: UTF8.self) else {
    throw FileProblem(description: "is not UTF-8")
  }
  return text
}
