// ListFile: reads a list file that the command line names.

import Core
import Glibc

/// A file, or standard input.
struct ListFile {
  /// Maximum length of the list in bytes. The server's own limit is lower, and the server reports
  /// it.
  static let maximumBytes = 64 << 20

  private let path: String
  private let input: CInt

  /// Creates the file at `path`. For `-`, the descriptor `input` is read.
  init(_ path: String, input: CInt) {
    self.path = path
    self.input = input
  }

  private var name: String { path == "-" ? "standard input" : path }

  /// Reads the whole file.
  func contents() throws(CommandFailure) -> [UInt8] {
    let opened = OwnedDescriptor(owning: path == "-" ? -1 : open(path, O_RDONLY | O_CLOEXEC))
    guard path == "-" || opened.value >= 0 else {
      throw CommandFailure(description: "\(name): cannot be read: \(errnoText())")
    }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    while true {
      let count = read(path == "-" ? input : opened.value, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else {
        throw CommandFailure(description: "\(name): cannot be read: \(errnoText())")
      }
      guard count > 0 else { return bytes }
      bytes += buffer[..<count]
      guard bytes.count <= Self.maximumBytes else {
        throw CommandFailure(description: "\(name): has more than \(Self.maximumBytes >> 20) MiB")
      }
    }
  }
}
