// SealedFile: a picture in memory that can be handed over and can no longer be changed by whoever made it.

import CLinux
import Glibc
import Model

/// Memory files (memfd_create(2)) with every seal: whoever maps one need not fear that it is shortened or changed.
public enum SealedFile {
  /// Copies bytes into a new memory file and seals it.
  public static func make(
    of bytes: UnsafeRawBufferPointer
  ) throws(WireError) -> OwnedDescriptor {
    let descriptor = pictor_linux_memory_file("pictor-result")
    guard descriptor >= 0 else { throw .system(call: "memfd_create", code: errno) }
    let file = OwnedDescriptor(owning: descriptor)
    var rest = bytes
    while let start = rest.baseAddress, !rest.isEmpty {
      let written = write(file.value, start, rest.count)
      if written < 0 && errno == EINTR { continue }
      guard written > 0 else { throw .system(call: "write", code: errno) }
      rest = UnsafeRawBufferPointer(rebasing: rest[written...])
    }
    guard pictor_linux_add_seals(file.value, pictor_linux_all_seals()) == 0 else {
      throw .system(call: "fcntl", code: errno)
    }
    return file
  }

  /// Checks a stranger's: that it is a memory file, has every seal, and has exactly so many bytes.
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
