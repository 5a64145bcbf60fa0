// OtherUser: an unprivileged user for programs that root starts.

import Glibc
import TestSupport

/// The user `nobody`: reads less than root, nothing below `/root` or in other users' folders.
enum OtherUser {
  static let id: uid_t = 65_534
  /// What starts a program as this user.
  static let wrapper = ["/usr/bin/setpriv", "--reuid=\(id)", "--regid=\(id)", "--clear-groups"]

  /// Copies the programs to where this user may start them: the build's folder may be closed.
  ///
  /// - Returns: The folder of the copies.
  static func programs(in folder: TemporaryFolder) throws -> String {
    let path = folder.path + "/programs"
    guard chmod(folder.path, 0o777) == 0, mkdir(path, 0o755) == 0, chmod(path, 0o755) == 0 else {
      throw ChildProcess.Failure("\(path): errno \(errno)")
    }
    for name in ["pictor", "pictor-imager"] {
      let copy = [
        "/usr/bin/install", "-m", "755", "\(TestBuild.programFolder)/\(name)", "\(path)/\(name)",
      ]
      guard try ChildProcess(copy).wait() == 0 else {
        throw ChildProcess.Failure("cannot copy \(name)")
      }
    }
    return path
  }

  /// Whether root may become this user here, and this user may read the toolchain's libraries.
  static let canRun: Bool = {
    guard geteuid() == 0, let folder = try? TemporaryFolder(),
      let programs = try? programs(in: folder),
      let program = try? ChildProcess(wrapper + [programs + "/pictor", "--version"])
    else { return false }
    return program.wait() == 0
  }()
}
