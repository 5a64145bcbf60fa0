// Listener: the listening socket, and the thread that accepts connections.

import CMicrohttpd
import Glibc
import Model
import Platform
import Synchronization

/// Listens, and accepts connections for the event loops.
///
/// libmicrohttpd's own listener has two faults in 0.9.75. `MHD_quiesce_daemon` can abort the
/// process if a thread removes the listening socket from its epoll set at the same moment. After
/// running out of descriptors, libmicrohttpd does not accept for seconds.
final class Listener: Sendable {
  /// The address for messages: `127.0.0.1:8080`, `[::1]:8080`.
  let endpoint: String
  /// The port, also if the system chose it.
  let port: Int

  private static let backlog: CInt = 4_096
  /// Limit of unsent bytes the kernel buffers per connection. Without it, a client that does not
  /// read holds up to `tcp_wmem`'s 4 MiB.
  static let unsentLimit: CInt = 128 << 10
  /// Pause, in milliseconds, after accepting failed for lack of descriptors, or at the connection
  /// limit.
  private static let pause: CInt = 20

  private let socket: CInt
  private let wake: WakeSignal
  private let isStopped = Atomic<Bool>(false)
  private let thread = Lock<OwnThread?>(nil)

  /// Listens on a numeric address. Accepts nothing before `start`.
  init(address: String, port: Int) throws(ServerError) {
    var hints = addrinfo()
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE
    hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    guard (0...65_535).contains(port), getaddrinfo(address, "\(port)", &hints, &list) == 0,
      let found = list?.pointee
    else { throw .invalidAddress("\(address):\(port)") }
    defer { freeaddrinfo(list) }
    let host = found.ai_family == AF_INET6 ? "[\(address)]" : address
    let wanted = "\(host):\(port)"
    func refused(_ descriptor: CInt) -> ServerError {
      let reason = errnoText()
      if descriptor >= 0 { Glibc.close(descriptor) }
      return .cannotListen(endpoint: wanted, reason: reason)
    }

    let socket = Glibc.socket(found.ai_family, found.ai_socktype, 0)
    guard socket >= 0, fcntl(socket, F_SETFD, FD_CLOEXEC) == 0,
      fcntl(socket, F_SETFL, O_NONBLOCK) == 0
    else { throw refused(socket) }
    var one: CInt = 1
    let size = socklen_t(MemoryLayout<CInt>.size)
    var unsent = Self.unsentLimit
    // Accepted sockets inherit both TCP options. TCP_NODELAY: a response never waits for the
    // client's acknowledgement.
    guard setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &one, size) == 0,
      setsockopt(socket, CInt(IPPROTO_TCP), TCP_NODELAY, &one, size) == 0,
      setsockopt(socket, CInt(IPPROTO_TCP), TCP_NOTSENT_LOWAT, &unsent, size) == 0,
      bind(socket, found.ai_addr, found.ai_addrlen) == 0, listen(socket, Self.backlog) == 0
    else { throw refused(socket) }

    var bound = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let named = withUnsafeMutablePointer(to: &bound) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(socket, $0, &length) }
    }
    guard named == 0 else { throw refused(socket) }
    // IPv4 and IPv6 socket addresses have the port at the same offset.
    let boundPort = withUnsafeBytes(of: &bound) { $0.load(fromByteOffset: 2, as: UInt16.self) }
    self.port = Int(UInt16(bigEndian: boundPort))
    endpoint = "\(host):\(self.port)"

    do throws(SystemError) {
      wake = try WakeSignal()
    } catch {
      throw refused(socket)
    }
    self.socket = socket
  }

  deinit {
    if !isStopped.load(ordering: .acquiring) { Glibc.close(socket) }
  }

  /// Starts accepting.
  ///
  /// - Parameters:
  ///   - name: the thread's name.
  ///   - offer: takes over an accepted socket, unless it is refused or has to wait. Further clients wait behind it.
  func start(
    name: String,
    offer: @escaping @Sendable (EventLoop.Accepted) -> ConnectionTable.Admission
  ) throws(ServerError) {
    do throws(SystemError) {
      let started = try OwnThread(name: name, rank: .foreground) { self.run(offer: offer) }
      thread.withLock { $0 = started }
    } catch {
      throw .cannotStart(reason: "no thread: \(error)")
    }
  }

  /// Stops accepting and closes the listening socket. Later clients are refused.
  func stop() {
    guard !isStopped.exchange(true, ordering: .acquiringAndReleasing) else { return }
    wake.set()
    thread.withLock { thread in
      defer { thread = nil }
      return thread
    }?.join()
    // A child process holds a copy of the socket until its exec. Only shutdown(2) stops that copy from
    // accepting.
    shutdown(socket, CInt(SHUT_RDWR))
    Glibc.close(socket)
  }

  private func run(offer: (EventLoop.Accepted) -> ConnectionTable.Admission) {
    // An accepted client for whom no connection is free.
    var held: EventLoop.Accepted?
    defer { if let held { Glibc.close(held.socket) } }
    var mustPause = false
    while !isStopped.load(ordering: .acquiring) {
      var waiting = Poll([wake.descriptor, mustPause ? -1 : socket])
      waiting.wait(milliseconds: mustPause ? Self.pause : -1)
      mustPause = false
      while !isStopped.load(ordering: .acquiring), !mustPause {
        if held == nil { held = acceptNext(mustPause: &mustPause) }
        guard let client = held else { break }
        switch offer(client) {
        case .admitted: held = nil
        case .refused:
          Glibc.close(client.socket)
          held = nil
        case .full: mustPause = true
        }
      }
    }
  }

  /// Accepts a client; `nil` if none waits, or if the thread must pause for lack of descriptors or memory.
  private func acceptNext(mustPause: inout Bool) -> EventLoop.Accepted? {
    while true {
      var address = sockaddr_storage()
      var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
      let client = withUnsafeMutablePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { accept(socket, $0, &length) }
      }
      if client >= 0 {
        _ = fcntl(client, F_SETFD, FD_CLOEXEC)
        let peer = withUnsafeBytes(of: &address) { bytes in
          bytes.baseAddress.flatMap { IPAddress($0, length: Int(length)) }
        }
        return EventLoop.Accepted(
          socket: client, address: address, length: length, peer: peer)
      }
      if errno == EAGAIN || errno == EWOULDBLOCK { return nil }
      guard errno == EINTR || errno == ECONNABORTED else {
        // EMFILE, ENFILE, ENOMEM: wait until another descriptor is closed.
        mustPause = true
        return nil
      }
    }
  }
}
