// Mount: small or read-only file systems for tests that run as root.

import Glibc
import TestSupport

/// A mounted file system, unmounted with its last reference.
final class Mount: Sendable {
  /// The error of a failed mount.
  struct Failure: Error {
    let command: [String]
  }

  /// Whether this process may mount. Containers usually forbid it, even for root.
  static let isAllowed: Bool = {
    guard geteuid() == 0, let folder = try? TemporaryFolder() else { return false }
    return (try? Mount(["-t", "tmpfs", "tmpfs"], over: folder.path)) != nil
  }()

  private let path: String

  /// Mounts with these arguments of mount(8).
  private init(_ arguments: [String], over path: String) throws {
    try Self.run(["mount"] + arguments + [path])
    self.path = path
  }

  deinit { try? Self.run(["umount", "--lazy", path]) }

  /// Mounts a tmpfs(5) with these options.
  static func small(_ options: String, over path: String) throws -> Mount {
    mkdir(path, 0o700)
    // The usual mode, 1777, lets all users write, which the tier refuses.
    return try Mount(["-t", "tmpfs", "-o", options + ",mode=700", "tmpfs"], over: path)
  }

  /// Remounts with other options.
  func change(_ options: String) throws {
    try Self.run(["mount", "-o", "remount," + options, path])
  }

  /// Mounts the folder itself read-only.
  static func readOnly(_ path: String) throws -> Mount {
    let mount = try Mount(["--bind", path], over: path)
    try run(["mount", "-o", "remount,bind,ro", path])
    return mount
  }

  private static func run(_ command: [String]) throws {
    let process = try ChildProcess(command)
    guard process.wait() == 0 else { throw Failure(command: command) }
  }
}
