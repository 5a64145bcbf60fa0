// LogFile: a file that log lines are appended to, and that can be opened anew.

import Glibc

/// A log file, or one of the program's own streams. After a reopening, the thread that writes takes
/// the new descriptor between two lines, so each line is in one file, once.
public final class LogFile: Sendable {
  private struct State {
    var current: CInt
    /// The descriptor of a reopening that the writer has not taken yet.
    var next: CInt?
  }

  /// The paths that mean the program's own streams. They are links, and what they lead to can often
  /// not be opened: the pipe of another user in a container, a socket under systemd. So the
  /// descriptors are duplicated.
  private static let streams = ["/dev/stdout": STDOUT_FILENO, "/dev/stderr": STDERR_FILENO]

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

  /// Whether it is a stream that leads to the same file, pipe or terminal as `descriptor`. A file
  /// of its own never counts: it may be rotated.
  func isStream(to descriptor: CInt) -> Bool {
    var (own, other) = (stat(), stat())
    return Self.streams[path] != nil && state.withLock { fstat($0.current, &own) } == 0
      && fstat(descriptor, &other) == 0
      && own.st_dev == other.st_dev && own.st_ino == other.st_ino
  }

  /// Opens the path again, after a rotation. On failure, the old file stays open. A stream stays
  /// what it is.
  func reopen() throws(SystemError) {
    guard Self.streams[path] == nil else { return }
    let opened = try Self.open(path, flags: O_CREAT)
    let unused = state.withLock { state in
      defer { state.next = opened }
      return state.next
    }
    if let unused { close(unused) }
  }

  /// Returns the descriptor to write to. Only the writing thread calls this method, because it
  /// closes the previous descriptor.
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
    case ELOOP:
      "it is a symbolic link, which is not followed; name the file, /dev/stdout or /dev/stderr"
    // ENXIO: a pipe without a reader, or a socket (open(2)).
    case EINVAL, ENXIO: "it is not a regular file, /dev/stdout or /dev/stderr"
    case EBADF: "the program has no such stream to write to"
    default: error.description
    }
  }

  /// Opens a regular file. Follows no symbolic link at the end of the path, which another user of
  /// the folder may have made, and does not wait for the reader of a pipe.
  private static func open(_ path: String, flags: CInt) throws(SystemError) -> CInt {
    if let stream = streams[path] { return try duplicate(stream) }
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

  /// Returns another descriptor of a stream. Its flags are those of all processes that share the
  /// stream, so it blocks; only the thread that writes waits.
  private static func duplicate(_ stream: CInt) throws(SystemError) -> CInt {
    let flags = fcntl(stream, F_GETFL)
    guard flags >= 0, flags & O_ACCMODE != O_RDONLY else { throw SystemError(EBADF) }
    let descriptor = fcntl(stream, F_DUPFD_CLOEXEC, 3)
    guard descriptor >= 0 else { throw SystemError() }
    return descriptor
  }
}
