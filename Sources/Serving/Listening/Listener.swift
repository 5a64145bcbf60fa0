// Listener: the listening sockets, and the thread that accepts their connections.

import CMicrohttpd
import Core
import Glibc
import Synchronization

/// Accepts connections for the event loops, from one socket or several.
///
/// libmicrohttpd's own listener has two faults in 0.9.75. `MHD_quiesce_daemon` can abort the
/// process if a thread removes the listening socket from its epoll set at the same moment. After
/// running out of descriptors, libmicrohttpd does not accept for seconds.
final class Listener: Sendable {
  var addresses: [ListenAddress] { sockets.map(\.address) }
  /// The port of the first IP address, also if the system chose it; 0 with unix sockets only.
  var port: Int { addresses.lazy.compactMap(\.port).first ?? 0 }
  /// Whether other processes hold all of its sockets, too. Connections that it does not accept then
  /// wait for the next server.
  var isInherited: Bool { sockets.allSatisfy(\.isInherited) }
  /// The addresses for messages: `127.0.0.1:8080 unix:/run/pictor.sock`.
  var endpoints: String { addresses.map(\.description).joined(separator: " ") }

  /// Pause, in milliseconds, after accepting failed for lack of descriptors, or at the connection
  /// limit.
  private static let pause: CInt = 20

  private let sockets: [ListeningSocket]
  private let wake: WakeSignal
  private let isStopped = Atomic<Bool>(false)
  private let thread = Lock<OwnThread?>(nil)

  /// Takes over listening sockets. Accepts nothing before `start`.
  init(_ sockets: [ListeningSocket]) throws(ServerError) {
    self.sockets = sockets
    wake = try ServerError.start(needing: "eventfd", try WakeSignal())
  }

  /// Takes over an accepted socket.
  typealias Offer =
    @Sendable (_ client: EventLoop.Accepted, _ isLast: Bool) ->
    ConnectionTable.Admission

  /// Starts accepting.
  ///
  /// - Parameter offer: takes over an accepted socket, unless it is refused or has to wait, with
  ///   others behind it. The last one must not wait: the listener has stopped.
  func start(name: String, offer: @escaping Offer) throws(ServerError) {
    let started = try ServerError.start(
      needing: "thread",
      try OwnThread(name: name, rank: .foreground) { self.run(offer: offer) })
    thread.withLock { $0 = started }
  }

  /// Stops accepting and closes the sockets. Clients are refused then, unless others hold them.
  func stop() {
    guard !isStopped.exchange(true, ordering: .acquiringAndReleasing) else { return }
    wake.set()
    thread.withLock { $0.take() }?.join()
    for socket in sockets { socket.close() }
  }

  private func run(offer: Offer) {
    // An accepted client for whom no connection is free.
    var held: EventLoop.Accepted?
    defer {
      if let held, offer(held, true) != .admitted { Glibc.close(held.socket) }
    }
    // The socket whose turn is next, so that none starves.
    var turn = 0
    let silent = [CInt](repeating: -1, count: sockets.count)
    let descriptors = sockets.map(\.descriptor)
    var mustPause = false
    while !isStopped.load(ordering: .acquiring) {
      var waiting = Poll([wake.descriptor] + (mustPause ? silent : descriptors))
      waiting.wait(milliseconds: mustPause ? Self.pause : -1)
      mustPause = false
      while !isStopped.load(ordering: .acquiring), !mustPause {
        if held == nil { held = acceptNext(turn: &turn, mustPause: &mustPause) }
        guard let client = held else { break }
        switch offer(client, false) {
        case .admitted: held = nil
        case .refused:
          Glibc.close(client.socket)
          held = nil
        case .full: mustPause = true
        }
      }
    }
  }

  /// Accepts a client of one of the sockets; `nil` if none waits, or if the thread must pause.
  private func acceptNext(turn: inout Int, mustPause: inout Bool) -> EventLoop.Accepted? {
    for _ in sockets.indices {
      let socket = sockets[turn]
      turn = (turn + 1) % sockets.count
      if let client = Self.accept(from: socket, mustPause: &mustPause) { return client }
      if mustPause { return nil }
    }
    return nil
  }

  /// Accepts a client; `nil` if none waits, or to pause for lack of descriptors or memory.
  private static func accept(
    from socket: ListeningSocket, mustPause: inout Bool
  ) -> EventLoop.Accepted? {
    while true {
      var address = sockaddr_storage()
      var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
      let client = withUnsafeMutablePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          Glibc.accept(socket.descriptor, $0, &length)
        }
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
