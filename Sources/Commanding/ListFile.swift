// ListFile: the bytes of a list that was named on the command line.

import Glibc
import Model
import Platform

/// A file, or standard input.
struct ListFile {
  /// Why it cannot be read.
  struct Failure: Error {
    /// In one line, for whoever gave the command.
    let description: String
  }

  /// Longest list read, in bytes; the server's own bound is lower, and it says so itself.
  static let most = 64 << 20

  private let path: String
  private let input: CInt

  /// The file at `path`; of `-`, what the descriptor `input` gives.
  init(_ path: String, input: CInt) { (self.path, self.input) = (path, input) }

  private var name: String { path == "-" ? "standard input" : path }

  /// All of it.
  func contents() throws(Failure) -> [UInt8] {
    let opened = OwnedDescriptor(owning: path == "-" ? -1 : open(path, O_RDONLY | O_CLOEXEC))
    guard path == "-" || opened.value >= 0 else {
      throw Failure(description: "\(name): cannot be read: \(errnoText())")
    }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    while true {
      let count = read(path == "-" ? input : opened.value, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else {
        throw Failure(description: "\(name): cannot be read: \(errnoText())")
      }
      guard count > 0 else { return bytes }
      bytes += buffer[..<count]
      guard bytes.count <= Self.most else {
        throw Failure(description: "\(name): has more than \(Self.most >> 20) MiB")
      }
    }
  }
}
