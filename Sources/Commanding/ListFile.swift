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

  /// Reads the whole file.
  func contents() throws(CommandFailure) -> [UInt8] {
    do throws(SystemError) {
      let limit = Self.maximumBytes
      return path == "-"
        ? try FileContents.read(input, limit: limit) : try FileContents.read(path, limit: limit)
    } catch {
      let name = path == "-" ? "standard input" : path
      let problem =
        error.code == EFBIG
        ? "has more than \(Self.maximumBytes >> 20) MiB" : "cannot be read: \(error)"
      throw CommandFailure(description: "\(name): \(problem)")
    }
  }
}
