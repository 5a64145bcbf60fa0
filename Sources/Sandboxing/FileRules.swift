// FileRules: Landlock's rules for files, the network and other processes.

import CSandbox
import Core
import Glibc

/// The rules of a sealed worker (landlock(7)): it reads `ReadablePaths`. All else that the kernel's
/// Landlock knows is refused: other files, changes, TCP, signals, abstract sockets.
enum FileRules {
  /// The rights that are refused, by the version of the interface that they came with.
  struct Rights: Equatable {
    var files: UInt64
    var network: UInt64
    var scopes: UInt64

    /// All rights of a version, from the table in landlock(7).
    init(version: Int) {
      // Version 1 has 13 rights for files; 2 adds moving, 3 truncating, 5 ioctl(2) on devices.
      let count = 13 + (version >= 2 ? 1 : 0) + (version >= 3 ? 1 : 0) + (version >= 5 ? 1 : 0)
      files = 1 << UInt64(count) - 1
      // To bind and to connect a TCP socket.
      network = version >= 4 ? 0b11 : 0
      // Abstract UNIX sockets, signals.
      scopes = version >= 6 ? 0b11 : 0
    }
  }

  /// Restricts the process, which must have one thread. Returns the version of the interface.
  static func restrict() throws(SandboxError) -> Int {
    let version = Int(pictor_sandbox_landlock_version())
    guard version > 0 else { throw SandboxError("Landlock", errno) }
    try checkThreads()
    let rights = Rights(version: version)
    let ruleset = pictor_sandbox_landlock_create(
      pictor_sandbox_rights(files: rights.files, network: rights.network, scopes: rights.scopes))
    guard ruleset >= 0 else { throw SandboxError("landlock_create_ruleset", errno) }
    let owned = OwnedDescriptor(owning: ruleset)
    for path in ReadablePaths.all { try allowReading(path, in: owned) }
    guard pictor_sandbox_landlock_restrict(owned.value) == 0 else {
      throw SandboxError("landlock_restrict_self", errno)
    }
    return version
  }

  private static func allowReading(
    _ path: String, in ruleset: borrowing OwnedDescriptor
  ) throws(SandboxError) {
    let place = pictor_sandbox_open_place(path)
    guard place >= 0 else { return }
    let owned = OwnedDescriptor(owning: place)
    var status = stat()
    guard fstat(owned.value, &status) == 0 else { throw SandboxError(path, errno) }
    // The right to list is refused for a file.
    let isFolder = status.st_mode & S_IFMT == S_IFDIR
    let rights =
      pictor_sandbox_right_read_file() | (isFolder ? pictor_sandbox_right_read_folder() : 0)
    guard pictor_sandbox_landlock_allow(ruleset.value, owned.value, rights) == 0 else {
      throw SandboxError("landlock_add_rule for \(path)", errno)
    }
  }

  /// Checks that no thread would stay unrestricted.
  private static func checkThreads() throws(SandboxError) {
    var status = stat()
    guard stat("/proc/self/task", &status) == 0 else {
      throw SandboxError("/proc/self/task", errno)
    }
    // A link for each thread, `.` and `..`.
    let count = Int(status.st_nlink) - 2
    guard count == 1 else { throw SandboxError("Landlock: \(count) threads run already") }
  }
}
