// FileContents: reads a whole file, such as a list, a secret, or a file of /proc.

import Glibc

/// The bytes of a file.
public enum FileContents {
  /// Reads a file by its path.
  ///
  /// - Parameter limit: the maximum size in bytes; a larger file is probably the wrong one.
  /// - Throws: `EFBIG` for a larger file; else the error of the system call.
  public static func read(_ path: String, limit: Int) throws(SystemError) -> [UInt8] {
    let file = OwnedDescriptor(owning: open(path, O_RDONLY | O_CLOEXEC))
    guard file.value >= 0 else { throw SystemError() }
    return try read(file.value, limit: limit)
  }

  /// Reads an open file, or a pipe, to its end.
  public static func read(_ descriptor: CInt, limit: Int) throws(SystemError) -> [UInt8] {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = Glibc.read(descriptor, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw SystemError() }
      guard count > 0 else { return bytes }
      bytes += buffer[..<count]
      guard bytes.count <= limit else { throw SystemError(EFBIG) }
    }
  }
}
