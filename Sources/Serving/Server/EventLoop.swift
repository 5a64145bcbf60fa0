// EventLoop: a libmicrohttpd daemon with its callbacks, and the thread that drives it.

import CMicrohttpd
import Core
import Glibc
import Synchronization

/// Serves connections on its own thread. A connection stays on the loop it was added to.
///
/// libmicrohttpd's own polling threads (`MHD_USE_INTERNAL_POLLING_THREAD`) can stall in 0.9.75.
/// They fetch 128 events at a time; after a full batch they wait for another event before they
/// process the batch. `MHD_run` fetches without waiting, at the cost of one poll(2) per round.
final class EventLoop: @unchecked Sendable {
  // Sound as Sendable: after `start` only the loop's thread uses the daemon, and `stop` uses it
  // after that thread has ended.

  /// An accepted socket with its client's address.
  struct Accepted {
    let socket: CInt
    let address: sockaddr_storage
    let length: socklen_t
    /// The client's address, or that of the last proxy; `nil` for a unix socket.
    let peer: IPAddress?
  }

  /// The context that libmicrohttpd's callbacks receive.
  final class Context: Sendable {
    let handler: RequestHandler
    let state: EventLoopState

    init(handler: RequestHandler, state: EventLoopState) {
      self.handler = handler
      self.state = state
    }
  }

  private struct Inbox {
    var accepted: [Accepted] = []
    var isClosed = false
  }

  private let daemon: OpaquePointer
  private let context: Context
  private let inbox = Lock(Inbox())
  private let isStopped = Atomic<Bool>(false)
  private let thread = Lock<OwnThread?>(nil)

  /// Creates the loop with this index. Nothing runs before `start`.
  init(
    index: Int, handler: RequestHandler, configuration: ServerConfiguration
  ) throws(ServerError) {
    let wake = try ServerError.start(needing: "eventfd", try WakeSignal())
    let state = EventLoopState(
      index: index, policy: handler.latestPolicy.copy(), wake: wake)
    context = Context(handler: handler, state: state)
    daemon = try MHDDaemon.start(for: context, configuration: configuration)
    handler.figures.add(state)
  }

  func start() throws(ServerError) {
    let name = context.handler.audience.threadName("http-\(context.state.index)")
    let started = try ServerError.start(
      needing: "thread", try OwnThread(name: name, rank: .foreground) { self.run() })
    thread.withLock { $0 = started }
  }

  /// The number of requests being answered.
  var active: Int { context.state.active.value }

  /// The number of rounds so far.
  var rounds: Int { context.state.rounds.value }

  /// The processor time of the thread; 0 while it does not run.
  var processorTime: Duration { thread.withLock { $0 }?.processorTime ?? .zero }

  /// Lets the thread run on these cores only. Does nothing while it does not run.
  func confine(to cores: Cores) throws(SystemError) {
    try thread.withLock { $0 }?.confine(to: cores)
  }

  /// Makes an idle loop run a round, from any thread.
  func wake() { context.state.wake.set() }

  /// Hands over an accepted socket, from any thread. Closes the socket if the loop has stopped.
  func add(_ accepted: Accepted) {
    let isTaken = inbox.withLock { inbox in
      if !inbox.isClosed { inbox.accepted.append(accepted) }
      return !inbox.isClosed
    }
    if isTaken { context.state.wake.set() } else { refuse(accepted) }
  }

  /// Stops the thread and closes all connections. No connection may be suspended.
  func stop() {
    isStopped.store(true, ordering: .releasing)
    context.state.wake.set()
    thread.withLock { $0.take() }?.join()
    let rest = inbox.withLock { inbox in
      inbox.isClosed = true
      return inbox.accepted
    }
    for accepted in rest { refuse(accepted) }
    MHD_stop_daemon(daemon)
  }

  private func refuse(_ accepted: Accepted) {
    close(accepted.socket)
    context.handler.connectionLost(accepted)
  }

  // MARK: The thread

  private func run() {
    Receiving.begin(for: context)
    let wake = context.state.wake
    var waiting = Poll([pictor_mhd_epoll_descriptor(daemon), wake.descriptor])
    var isBusy = false
    while !isStopped.load(ordering: .acquiring) {
      // A round that read requests is followed by another without a poll, which saves a system call
      // per hit. A failed poll (signal, lack of memory) leads to a round without events.
      if !isBusy { waiting.wait(milliseconds: patience()) }
      if wake.isPending {
        wake.reset()
        takeIn()
      }
      context.state.rounds.add(1)
      let requests = context.state.received.value
      MHD_run(daemon)
      isBusy = context.state.received.value != requests
    }
  }

  /// Returns the milliseconds until libmicrohttpd's next timeout, or -1 for none.
  private func patience() -> CInt {
    var milliseconds: UInt64 = 0
    return MHD_get_timeout(daemon, &milliseconds) == .YES ? CInt(clamping: milliseconds) : -1
  }

  private func takeIn() {
    let accepted = inbox.withLock { inbox in
      defer { inbox.accepted.removeAll(keepingCapacity: true) }
      return inbox.accepted
    }
    for client in accepted {
      let isServed = withUnsafePointer(to: client.address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          MHD_add_connection(daemon, client.socket, $0, client.length)
        }
      }
      // On failure libmicrohttpd has already closed the socket.
      guard isServed != .YES else { continue }
      context.handler.log.debug("connection not accepted", fields: ["reason": .string(errnoText())])
      context.handler.connectionLost(client)
    }
  }
}

/// `MHD_Daemon`s without threads of their own; an `EventLoop` drives each.
enum MHDDaemon {
  /// Bytes for a request's and its response's header together. libmicrohttpd clears them after each
  /// request, so more would slow hits. `redirecting` is for responses that repeat the target.
  private static let connectionMemory = (standard: 16 << 10, redirecting: 24 << 10)

  /// Starts a daemon. `context` must outlive the daemon.
  static func start(
    for context: EventLoop.Context, configuration: ServerConfiguration
  ) throws(ServerError) -> OpaquePointer {
    let flags =
      MHD_USE_EPOLL.rawValue | MHD_ALLOW_SUSPEND_RESUME.rawValue
      | MHD_USE_NO_LISTEN_SOCKET.rawValue
    let memory =
      configuration.redirectsAuto ? connectionMemory.redirecting : connectionMemory.standard
    let idleSeconds = max((configuration.idleTimeout.wholeMilliseconds + 999) / 1_000, 1)
    // The listener enforces the limit across all loops. Connections that yield are beyond it until
    // they are closed, and so is the last one of a listener that stops.
    guard
      let daemon = pictor_mhd_start_daemon(
        flags, Unmanaged.passUnretained(context.handler).toOpaque(), Callbacks.requestReceived,
        Callbacks.targetReceived, Callbacks.requestCompleted, Callbacks.connectionChanged,
        Unmanaged.passUnretained(context).toOpaque(),
        UInt32(clamping: configuration.connectionLimit + ConnectionTable.maximumYielding + 1),
        UInt32(clamping: idleSeconds),
        memory, 1)
    else { throw .cannotStart(reason: "libmicrohttpd: \(errnoText())") }
    return daemon
  }

  private static let panicLog = Lock<Log?>(nil)

  /// Logs libmicrohttpd's panics and aborts. libmicrohttpd panics on inconsistent state and expects
  /// no return.
  static func reportPanics(to log: Log) {
    panicLog.withLock { $0 = log }
    MHD_set_panic_func(
      { _, file, line, reason in
        let location = file.map { String(cString: $0) } ?? "?"
        let text = reason.map { String(cString: $0) } ?? "?"
        let log = MHDDaemon.panicLog.withLock { $0 }
        log?.error(
          "libmicrohttpd found its state inconsistent; the server stops",
          fields: ["reason": .string(text), "location": .string("\(location):\(line)")])
        log?.flush(within: .seconds(1))
        abort()
      }, nil)
  }
}

/// The C callbacks of libmicrohttpd. A type holds them, because closures formed in `main.swift` are
/// bound to the main actor and crash on libmicrohttpd's threads.
///
/// Both objects outlive each call: the event loop retains the handler, and `connection` retains the
/// client until it is closed. The calls therefore skip reference counting, which would slow every
/// hit.
private enum Callbacks {
  static let targetReceived:
    @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?, OpaquePointer?)
      -> UnsafeMutableRawPointer? = { context, uri, connection in
        guard let context, let uri, let connection,
          let place = pictor_mhd_socket_context(connection)
        else { return nil }
        Callbacks.withHandler(context, client: place) { handler, client in
          handler.receive(UnsafeRawBufferPointer(start: uri, count: strlen(uri)), on: client)
        }
        return place
      }

  static let requestReceived: MHD_AccessHandlerCallback = {
    context, connection, _, method, version, body, bodySize, place in
    guard let context, let connection, let method, let bodySize, let client = place?.pointee
    else { return .NO }
    return Callbacks.withHandler(context, client: client) { handler, client in
      handler.handle(
        on: client, connection, method: method, version: version, body: body,
        bodySize: bodySize)
    }
  }

  static let requestCompleted: MHD_RequestCompletedCallback = {
    context, connection, place, reason in
    guard let context, let connection, let client = place?.pointee else { return }
    Callbacks.withHandler(context, client: client) { handler, client in
      handler.completed(
        on: client, connection, isWhole: reason == .REQUEST_TERMINATED_COMPLETED_OK)
    }
  }

  static let connectionChanged: MHD_NotifyConnectionCallback = { context, connection, place, code in
    guard let context, let connection, let place else { return }
    let loop = Unmanaged<EventLoop.Context>.fromOpaque(context).takeUnretainedValue()
    if code == .CONNECTION_NOTIFY_STARTED {
      let client = loop.handler.opened(
        descriptor: pictor_mhd_descriptor(connection), peer: peer(of: connection),
        on: loop.state)
      // Released below, when the connection is closed.
      place.pointee = Unmanaged.passRetained(client).toOpaque()
    } else if let opaque = place.pointee {
      loop.handler.closed(Unmanaged<Connection>.fromOpaque(opaque).takeRetainedValue())
      place.pointee = nil
    }
  }

  private static func peer(of connection: OpaquePointer) -> IPAddress? {
    guard let address = pictor_mhd_client_address(connection) else { return nil }
    // libmicrohttpd keeps the address in as much room as its family takes.
    let isIPv6 = CInt(address.pointee.sa_family) == AF_INET6
    let length = isIPv6 ? MemoryLayout<sockaddr_in6>.size : MemoryLayout<sockaddr_in>.size
    return IPAddress(UnsafeRawPointer(address), length: length)
  }

  private static func withHandler<Result>(
    _ context: UnsafeMutableRawPointer, client: UnsafeMutableRawPointer,
    body: (RequestHandler, Connection) -> Result
  ) -> Result {
    Unmanaged<RequestHandler>.fromOpaque(context)._withUnsafeGuaranteedRef { handler in
      Unmanaged<Connection>.fromOpaque(client)._withUnsafeGuaranteedRef { client in
        body(handler, client)
      }
    }
  }
}
