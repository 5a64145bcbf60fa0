// SealedFile: a stranger's memory file, looked at before anyone trusts it.

import CLinux
import Glibc
import Model
import Platform

/// Memory files (memfd_create(2)) with every seal, as `MemoryFile` makes them: whoever maps one need not fear that it
/// is shortened or changed.
public enum SealedFile {
  /// Checks that it is a memory file, has every seal, and has exactly so many bytes.
  ///
  /// - Throws: `WireError.malformed` when one of these is not so.
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
