// ChildProcess: programs that tests start.

import CLinux
import Core
import Glibc

/// A program that a test started. It inherits its output and the named descriptors.
///
/// Tests run in parallel, and a program that keeps another test's socket open would keep its
/// connection open too.
public struct ChildProcess: Sendable {
  /// A failed step.
  public struct Failure: Error, CustomStringConvertible {
    /// The program or the step, and the reason.
    public let description: String

    /// Creates a failure.
    public init(_ description: String) { self.description = description }
  }

  /// The destination of a program's standard output and standard error.
  public enum Output: Sendable {
    /// `/dev/null`.
    case discarded
    /// A new file.
    case file(String)
    /// An open descriptor for standard output; standard error stays this process's own.
    case descriptor(CInt)
  }

  /// The process id.
  public let id: pid_t

  /// The environment that this process was started with. `environ` is no alternative: libvips'
  /// start sets variables, on any thread, which moves the table.
  private static let ownEnvironment: [String] =
    ControlGroups.text("/proc/self/environ").map { text in
      text.split(separator: "\0").map(String.init)
    } ?? []

  /// Starts a program.
  ///
  /// - Parameters:
  ///   - arguments: The program, looked up in `PATH` unless it has a slash, and its arguments.
  ///   - environment: The environment; `nil` for this process's own.
  ///   - output: The destination of its output.
  ///   - inherited: The descriptors that it has as 3, 4 and so on.
  public init(
    _ arguments: [String], environment: [String: String]? = nil, output: Output = .discarded,
    inherited: [CInt] = []
  ) throws(Failure) {
    // Above the numbers that they are copied to.
    let copies = inherited.map { pictor_linux_duplicate_above($0, 100) }
    defer { for copy in copies { close(copy) } }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    switch output {
    case .discarded:
      posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
      posix_spawn_file_actions_adddup2(&actions, 1, 2)
    case .file(let path):
      posix_spawn_file_actions_addopen(&actions, 1, path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
      posix_spawn_file_actions_adddup2(&actions, 1, 2)
    case .descriptor(let descriptor):
      posix_spawn_file_actions_adddup2(&actions, descriptor, 1)
    }
    for (number, copy) in copies.enumerated() {
      posix_spawn_file_actions_adddup2(&actions, copy, CInt(3 + number))
    }
    _ = pictor_linux_close_from(&actions, CInt(3 + copies.count))
    var argv = arguments.map { strdup($0) } + [nil]
    let variables = environment?.map { "\($0)=\($1)" } ?? Self.ownEnvironment
    var envp = variables.map { strdup($0) } + [nil]
    defer { for pointer in argv + envp { free(pointer) } }
    var id = pid_t()
    let status = posix_spawnp(&id, arguments[0], &actions, nil, &argv, &envp)
    guard status == 0 else {
      throw Failure("\(arguments[0]): \(String(cString: strerror(status)))")
    }
    self.id = id
  }

  /// Waits for the end of the process. Returns its exit status, or minus the signal that ended it.
  @discardableResult public func wait() -> CInt {
    var status: CInt = 0
    while waitpid(id, &status, 0) < 0, errno == EINTR {}
    return Self.result(of: status)
  }

  /// Kills the process and waits for its end. Returns the same as `wait`.
  @discardableResult public func kill() -> CInt {
    Glibc.kill(id, SIGKILL)
    return wait()
  }

  /// Returns the exit status in a status of wait(2), or minus the signal that ended the process.
  public static func result(of status: CInt) -> CInt {
    status & 0x7f == 0 ? status >> 8 & 0xff : -(status & 0x7f)
  }

  /// Runs a program to its end. Throws unless it exits with 0.
  public static func run(_ arguments: String...) throws(Failure) {
    let status = try ChildProcess(arguments).wait()
    guard status == 0 else {
      throw Failure("\(arguments.joined(separator: " ")): status \(status)")
    }
  }
}
