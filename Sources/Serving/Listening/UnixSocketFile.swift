// UnixSocketFile: the entry of a listening unix socket in the file system.

import CMicrohttpd
import Core
import Glibc

/// The entry that a server created for its unix socket (unix(7)).
struct UnixSocketFile: Sendable {
  /// Why there is no listening socket.
  enum Failure: Error, Equatable {
    /// A server listens there.
    case inUse
    /// The path belongs to something else than a socket.
    case notASocket
    /// Another server is starting in the same folder, and does not end.
    case locked
    /// A system call failed.
    case system(CInt)

    /// One line for the operator, without the path.
    var reason: String {
      switch self {
      case .inUse: errnoText(EADDRINUSE)
      case .notASocket: "there is a file that is no socket"
      case .locked: "another process holds the lock of its folder"
      case .system(let code): errnoText(code)
      }
    }
  }

  private let path: String
  private let device: dev_t
  private let inode: ino_t

  /// Listens at a path. A socket that a crashed server left is replaced.
  ///
  /// The folder is locked: of two servers that find a socket unused, only one replaces it.
  ///
  /// - Returns: the entry and its socket, which the caller closes.
  static func listening(
    at path: String, mode: Int, backlog: CInt
  ) throws(Failure) -> (file: UnixSocketFile, descriptor: CInt) {
    let folder = try locked(folder(of: path))
    defer { flock(folder.value, LOCK_UN) }
    if try state(of: path) == .unused, unlink(path) != 0 { throw .system(errno) }
    let socket = try newSocket()
    guard withAddress(path, { bind(socket.value, $0, $1) }) == 0 else { throw .system(errno) }
    var status = stat()
    // No client can connect before it listens.
    guard chmod(path, mode_t(mode)) == 0, listen(socket.value, backlog) == 0,
      lstat(path, &status) == 0
    else {
      let code = errno
      unlink(path)
      throw .system(code)
    }
    let file = UnixSocketFile(path: path, device: status.st_dev, inode: status.st_ino)
    return (file, socket.release())
  }

  /// Checks whether a server could listen at a path. Changes nothing.
  static func check(_ path: String) throws(Failure) {
    _ = try state(of: path)
    guard access(folder(of: path), W_OK | X_OK) == 0 else { throw .system(errno) }
  }

  /// Removes the entry, unless another server has replaced it.
  func remove() {
    var status = stat()
    guard lstat(path, &status) == 0, status.st_dev == device, status.st_ino == inode else { return }
    unlink(path)
  }

  private enum State {
    case absent
    /// A socket at which no server listens.
    case unused
  }

  private static func state(of path: String) throws(Failure) -> State {
    var status = stat()
    guard lstat(path, &status) == 0 else {
      if errno == ENOENT { return .absent }
      throw .system(errno)
    }
    guard status.st_mode & S_IFMT == S_IFSOCK else { throw .notASocket }
    // Non-blocking, so a full backlog is EAGAIN. A listener gets a connection that closes at once.
    let probe = try newSocket()
    guard withAddress(path, { connect(probe.value, $0, $1) }) != 0 else { throw .inUse }
    switch errno {
    case ECONNREFUSED: return .unused
    case ENOENT: return .absent
    // EPROTOTYPE: a socket of another type, such as that of a log.
    case EAGAIN, EPROTOTYPE: throw .inUse
    default: throw .system(errno)
    }
  }

  private static func folder(of path: String) -> String {
    let end = path.lastIndex(of: "/") ?? path.startIndex
    return end == path.startIndex ? "/" : String(path[..<end])
  }

  /// Opens and locks a folder. A start takes milliseconds, so a second is enough for several.
  private static func locked(_ folder: String) throws(Failure) -> OwnedDescriptor {
    let descriptor = OwnedDescriptor(owning: open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC))
    guard descriptor.value >= 0 else { throw .system(errno) }
    for _ in 0..<1_000 {
      if flock(descriptor.value, LOCK_EX | LOCK_NB) == 0 { return descriptor }
      guard errno == EWOULDBLOCK || errno == EINTR else { throw .system(errno) }
      usleep(1_000)
    }
    throw .locked
  }

  private static func newSocket() throws(Failure) -> OwnedDescriptor {
    let kind = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    let socket = OwnedDescriptor(owning: Glibc.socket(AF_UNIX, kind, 0))
    guard socket.value >= 0 else { throw .system(errno) }
    return socket
  }

  private static func withAddress(
    _ path: String, _ call: (UnsafePointer<sockaddr>, socklen_t) -> CInt
  ) -> CInt {
    UnixAddress(path).map { $0.withSocketAddress(call) } ?? -1
  }
}
