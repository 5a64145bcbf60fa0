// LogFile: a file that log lines are appended to, and that can be opened anew.

import Glibc
import Platform

/// A log file. After a reopening, the thread that writes takes the new descriptor between two lines, so
/// each line is in one file, once.
public final class LogFile: Sendable {
  private struct State {
    var current: CInt
    /// The descriptor of a reopening that the writer has not taken yet.
    var next: CInt?
  }

  /// The path as configured.
  public let path: String
  private let state: Lock<State>

  /// Opens a file, and creates it if it is missing, with mode 0640.
  public init(_ path: String) throws(SystemError) {
    self.path = path
    state = Lock(State(current: try Self.open(path, flags: O_CREAT)))
  }

  deinit {
    state.withLock { state in
      close(state.current)
      if let next = state.next { close(next) }
    }
  }

  /// Opens the path again, after a rotation. On failure, the old file stays open.
  func reopen() throws(SystemError) {
    let opened = try Self.open(path, flags: O_CREAT)
    let unused = state.withLock { state in
      defer { state.next = opened }
      return state.next
    }
    if let unused { close(unused) }
  }

  /// Returns the descriptor to write to. Only the writing thread calls this method, because it closes
  /// the previous descriptor.
  func descriptor() -> CInt {
    let (current, old) = state.withLock { state -> (CInt, CInt?) in
      guard let next = state.next else { return (state.current, nil) }
      defer { state = State(current: next, next: nil) }
      return (next, state.current)
    }
    if let old { close(old) }
    return current
  }

  /// Returns why a file could not be opened, without creating it; `nil` if it could.
  public static func problem(of path: String) -> String? {
    do {
      close(try open(path, flags: 0))
      return nil
    } catch {
      guard error.code == ENOENT else { return reason(error) }
      let end = path.lastIndex(of: "/")
      let folder = end.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
      return access(folder, W_OK | X_OK) == 0 ? nil : errnoText()
    }
  }

  /// Says what an error of opening means for a log file.
  static func reason(_ error: SystemError) -> String {
    switch error.code {
    case ELOOP: "it is a symbolic link, which is not followed"
    // ENXIO: a pipe without a reader, or a socket (open(2)).
    case EINVAL, ENXIO: "it is not a regular file"
    default: error.description
    }
  }

  /// Opens a regular file. Follows no symbolic link at the end of the path, which another user of the
  /// folder may have made, and does not wait for the reader of a pipe.
  private static func open(_ path: String, flags: CInt) throws(SystemError) -> CInt {
    let descriptor = Glibc.open(
      path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | flags, 0o640)
    guard descriptor >= 0 else { throw SystemError() }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      close(descriptor)
      throw SystemError(EINVAL)
    }
    return descriptor
  }
}
