// MHDDaemon: starts libmicrohttpd daemons and routes their C callbacks to the request handler.

import CMicrohttpd
import Core
import Glibc
import Synchronization

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
