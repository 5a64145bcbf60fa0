// SealedFile: validates a memory file received from another process.

import CLinux
import Glibc
import Model
import Platform

/// Memory files (memfd_create(2)) with all seals, as `MemoryFile` creates them. A mapped file with
/// all seals cannot be truncated or changed.
public enum SealedFile {
  /// Checks that the file is a memory file with all seals and exactly `count` bytes.
  ///
  /// - Throws: `WireError.malformed` otherwise.
  public static func check(
    _ file: borrowing OwnedDescriptor, count: Int
  ) throws(WireError) {
    // Only memory files have seals, so this also refuses pipes, sockets, devices and files on disk.
    let seals = pictor_linux_get_seals(file.value)
    let wanted = pictor_linux_all_seals()
    guard seals >= 0, seals & wanted == wanted else { throw .malformed("the file is not sealed") }
    var status = stat()
    guard fstat(file.value, &status) == 0 else { throw .system(call: "fstat", code: errno) }
    guard Int(status.st_size) == count else {
      throw .malformed("the file has \(status.st_size) bytes, not \(count)")
    }
  }
}
