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
  let bytes: [UInt8]
  do throws(SystemError) {
    bytes = try FileContents.read(path, limit: limit)
  } catch {
    throw FileProblem(
      description: error.code == EFBIG
        ? "has more than \(ByteSize.text(limit))"
        : "cannot be read: \(String(cString: strerror(error.code)))")
  }
  guard let text = String(validating: bytes, as: UTF8.self) else {
    throw FileProblem(description: "is not UTF-8")
  }
  return text
}
