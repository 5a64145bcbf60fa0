// ListeningSocket: a socket that listens: at an IP address, a path, or inherited.

import CMicrohttpd
import Core
import Glibc
import Synchronization

/// A listening socket with one owner, the listener.
///
/// Closing it stops new connections. One that was inherited stays open in the process that holds
/// it: later connections wait in its backlog for the next server.
final class ListeningSocket: Sendable {
  /// Where it listens, with the port that the system chose.
  let address: ListenAddress
  /// The descriptor, non-blocking; valid until `close`.
  let descriptor: CInt
  /// Whether another process holds the socket, too.
  let isInherited: Bool

  /// The maximum number of connections that wait to be accepted.
  private static let backlog: CInt = 4_096
  /// Limit of unsent bytes the kernel buffers per connection. Without it, a client that does not
  /// read holds up to `tcp_wmem`'s 4 MiB.
  static let unsentLimit: CInt = 128 << 10

  /// The entry of a unix socket that this server created.
  private let file: UnixSocketFile?
  private let isClosed = Atomic<Bool>(false)

  /// Listens on all addresses, or on none of them.
  static func all(on addresses: [ListenAddress], mode: Int) throws(ServerError)
    -> [ListeningSocket]
  {
    var sockets: [ListeningSocket] = []
    do throws(ServerError) {
      for address in addresses {
        sockets.append(
          try ListeningSocket(
            on: address, isIPv6Only: address.isIPv6Only(beside: addresses), mode: mode))
      }
    } catch {
      for socket in sockets { socket.close() }
      throw error
    }
    return sockets
  }

  /// Takes over listening sockets that another process has opened.
  static func inherited(_ descriptors: [CInt]) throws(ServerError) -> [ListeningSocket] {
    try descriptors.map { descriptor throws(ServerError) in
      try ListeningSocket(inherited: descriptor)
    }
  }

  /// Listens on one address.
  ///
  /// - Parameter isIPv6Only: whether a socket on `::` leaves IPv4 to another one.
  init(on address: ListenAddress, isIPv6Only: Bool = false, mode: Int = 0o660) throws(ServerError) {
    let socket: OwnedDescriptor
    switch address {
    case .network(let host, let port):
      socket = try NetworkBinding.bound(host: host, port: port, isIPv6Only: isIPv6Only)
      guard Self.prepare(socket.value), listen(socket.value, Self.backlog) == 0 else {
        throw .cannotListen(endpoint: "\(address)", reason: errnoText())
      }
      file = nil
    case .unix(let path):
      do throws(UnixSocketFile.Failure) {
        // A unix socket has no options.
        let made = try UnixSocketFile.listening(at: path, mode: mode, backlog: Self.backlog)
        socket = OwnedDescriptor(owning: made.descriptor)
        file = made.file
      } catch {
        throw ServerError(error, at: address)
      }
    }
    self.address = Self.name(of: socket.value) ?? address
    isInherited = false
    descriptor = socket.release()
  }

  /// Takes over a listening socket, and sets the options that accepted sockets inherit.
  init(inherited descriptor: CInt) throws(ServerError) {
    guard Self.prepare(descriptor), let name = Self.name(of: descriptor) else {
      throw .cannotListen(endpoint: "the inherited socket \(descriptor)", reason: errnoText())
    }
    address = name
    file = nil
    isInherited = true
    self.descriptor = descriptor
  }

  deinit { close() }

  /// Stops listening, and removes the entry of a unix socket. Later connections are refused, or
  /// wait if another process holds the socket.
  func close() {
    guard !isClosed.exchange(true, ordering: .acquiringAndReleasing) else { return }
    file?.remove()
    // A child process holds a copy of the socket until its exec; only shutdown(2) stops that one.
    if !isInherited { shutdown(descriptor, CInt(SHUT_RDWR)) }
    Glibc.close(descriptor)
  }

  /// Returns where a socket listens; `nil` for an address family other than IPv4, IPv6 and unix,
  /// and for a unix socket without a path.
  static func name(of descriptor: CInt) -> ListenAddress? {
    var bound = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let named = withUnsafeMutablePointer(to: &bound) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
    }
    guard named == 0 else { return nil }
    let family = CInt(bound.ss_family)
    return withUnsafeBytes(of: &bound) { bytes in
      if family == AF_UNIX {
        let path = bytes[MemoryLayout<sa_family_t>.size..<Int(length)].prefix { $0 != 0 }
        return path.isEmpty ? nil : .unix(path: String(decoding: path, as: UTF8.self))
      }
      guard let start = bytes.baseAddress, let ip = IPAddress(start, length: Int(length)) else {
        return nil
      }
      // IPv4 and IPv6 socket addresses have the port at the same offset.
      let port = UInt16(bigEndian: bytes.load(fromByteOffset: 2, as: UInt16.self))
      return .network(host: "\(ip)", port: Int(port))
    }
  }

  /// Sets the options. Accepted sockets inherit both of TCP. TCP_NODELAY: a response never waits
  /// for the client's acknowledgement.
  private static func prepare(_ descriptor: CInt) -> Bool {
    let flags = fcntl(descriptor, F_GETFL)
    guard fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0, flags >= 0,
      fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0
    else { return false }
    guard case .network? = name(of: descriptor) else { return true }
    var one: CInt = 1
    var unsent = unsentLimit
    let size = socklen_t(MemoryLayout<CInt>.size)
    return setsockopt(descriptor, CInt(IPPROTO_TCP), TCP_NODELAY, &one, size) == 0
      && setsockopt(descriptor, CInt(IPPROTO_TCP), TCP_NOTSENT_LOWAT, &unsent, size) == 0
  }
}

/// Binds sockets to IP addresses.
enum NetworkBinding {
  /// Returns a socket bound to a numeric address. It does not listen yet, so clients are refused.
  ///
  /// - Throws: `invalidAddress`, `cannotListen`, or `addressInUse`.
  static func bound(host: String, port: Int, isIPv6Only: Bool) throws(ServerError)
    -> OwnedDescriptor
  {
    var hints = addrinfo()
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE
    hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    guard (0...65_535).contains(port), getaddrinfo(host, "\(port)", &hints, &list) == 0,
      let found = list?.pointee
    else { throw .invalidAddress("\(host):\(port)") }
    defer { freeaddrinfo(list) }
    let endpoint = "\(ListenAddress(host: host, port: port))"
    let kind = found.ai_socktype | CInt(SOCK_CLOEXEC.rawValue)
    let socket = OwnedDescriptor(owning: Glibc.socket(found.ai_family, kind, 0))
    var one: CInt = 1
    let size = socklen_t(MemoryLayout<CInt>.size)
    guard socket.value >= 0,
      setsockopt(socket.value, SOL_SOCKET, SO_REUSEADDR, &one, size) == 0,
      !isIPv6Only
        || setsockopt(socket.value, CInt(IPPROTO_IPV6), IPV6_V6ONLY, &one, size) == 0,
      bind(socket.value, found.ai_addr, found.ai_addrlen) == 0
    else {
      throw errno == EADDRINUSE
        ? .addressInUse(endpoint: endpoint)
        : .cannotListen(endpoint: endpoint, reason: errnoText())
    }
    return socket
  }
}

/// Whether a listener could have its addresses.
public enum ListenCheck {
  /// Checks an address: it belongs to this machine, and its port or path is free and permitted.
  /// Changes nothing that a client of a running server notices.
  public static func run(
    _ address: ListenAddress, beside others: [ListenAddress]
  ) throws(ServerError) {
    switch address {
    case .network(let host, let port):
      _ = try NetworkBinding.bound(
        host: host, port: port, isIPv6Only: address.isIPv6Only(beside: others))
    case .unix(let path):
      do throws(UnixSocketFile.Failure) {
        try UnixSocketFile.check(path)
      } catch {
        throw ServerError(error, at: address)
      }
    }
  }
}

extension ServerError {
  /// Says why a unix socket cannot listen.
  fileprivate init(_ failure: UnixSocketFile.Failure, at address: ListenAddress) {
    self =
      failure == .inUse
      ? .addressInUse(endpoint: "\(address)")
      : .cannotListen(endpoint: "\(address)", reason: failure.reason)
  }
}

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
