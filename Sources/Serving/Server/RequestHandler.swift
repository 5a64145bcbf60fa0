// RequestHandler: handles the callbacks of a request, from its first line to its last byte.

import CMicrohttpd
import Glibc
import Model
import Platform
import Synchronization
import Telemetry

/// Handles requests. libmicrohttpd calls it on the event loops' threads: `opened`; for each request
/// `receive`, `handle` (at least twice) and `completed`; then `closed`.
final class RequestHandler: Sendable {
  let log: Log
  let configuration: ServerConfiguration
  /// The rules derived from the configuration.
  let rules: RequestRules
  /// The rules for operators.
  let operatorRules: RequestRules
  let provider: any ImageProvider
  let figures: ServerFigures
  /// Notices clients that disconnect, and enforces deadlines.
  let monitor: ConnectionMonitor
  let stats: @Sendable (RequestFigures, Bool) -> Stats
  /// Whether hits are logged, cached because it is read for each hit.
  let logsHits: Bool
  /// `answerTimeout` in milliseconds.
  let answerTimeout: Int
  /// Milliseconds from the end of a request to the end of the next header: libmicrohttpd's idle
  /// time-out plus the header time-out.
  let keepAliveTimeout: Int
  /// Distinguishes this server's prepared responses from those of another server in the process.
  let serial: UInt64
  private static let serials = Atomic<UInt64>(0)
  private let isStopAnnounced = Atomic<Bool>(false)
  private let draining = Atomic<Bool>(false)
  /// The operators' tokens; without tokens `/admin` is disabled.
  let operatorTokens: Lock<[String]>
  private let connections = Atomic<Int>(0)
  /// The origins whose pages may read responses.
  let crossOrigin: CrossOrigin
  /// Running requests that a later one may supersede.
  let supersededRequests = SupersededRequests()
  /// The services behind the admin endpoints.
  let services: AdminServices
  /// Threads that read the parts of large files that are not in the page cache.
  let fileReaders = BlockingThreads(name: "pictor-send")

  init(
    configuration: ServerConfiguration, provider: any ImageProvider, figures: ServerFigures,
    monitor: ConnectionMonitor, services: AdminServices,
    stats: @escaping @Sendable (RequestFigures, Bool) -> Stats, log: Log
  ) {
    self.services = services
    self.configuration = configuration
    rules = RequestRules(configuration)
    operatorRules = rules.forOperators
    operatorTokens = Lock(configuration.operatorTokens)
    crossOrigin = CrossOrigin(configuration.corsOrigins)
    self.provider = provider
    self.figures = figures
    self.monitor = monitor
    self.stats = stats
    self.log = log
    answerTimeout = configuration.answerTimeout.wholeMilliseconds
    keepAliveTimeout =
      configuration.idleTimeout.wholeMilliseconds + configuration.headerTimeout.wholeMilliseconds
    logsHits = log.level <= (configuration.loggedRequests == .all ? .info : .debug)
    serial = Self.serials.wrappingAdd(1, ordering: .relaxed).newValue
  }

  /// Whether `/stats` reports that the server stops.
  var announcesStop: Bool { isStopAnnounced.load(ordering: .relaxed) || isDraining }

  /// Makes `/stats` report that the server stops.
  func announceStop() { isStopAnnounced.store(true, ordering: .relaxed) }

  /// Whether new requests are refused.
  var isDraining: Bool { draining.load(ordering: .relaxed) }

  /// Refuses further image requests with 503 `draining`.
  func drain() { draining.store(true, ordering: .relaxed) }

  // MARK: Connections

  /// Counts a connection that is about to be passed to libmicrohttpd.
  func connectionAccepted() { connections.wrappingAdd(1, ordering: .relaxed) }

  /// Counts the end of a connection.
  func connectionEnded() { connections.wrappingSubtract(1, ordering: .relaxed) }

  /// Whether there are admin endpoints.
  var hasOperators: Bool { operatorTokens.withLock { !$0.isEmpty } }

  /// The number of open connections.
  var connectionCount: Int { connections.load(ordering: .relaxed) }

  /// Creates the state of a new connection, on the thread of its event loop.
  func opened(descriptor: CInt, peer: IPAddress?, on loop: EventLoopState) -> Connection {
    let watch = ConnectionWatch(
      descriptor: descriptor,
      deadline: Clock.coarseMilliseconds() + configuration.settings.headerTimeout.wholeMilliseconds)
    monitor.add(watch)
    let client = Connection(loop: loop, watch: watch, peer: peer)
    loop.clients.add(client)
    return client
  }

  /// Removes the state of a connection whose socket is about to be closed.
  func closed(_ client: Connection) {
    client.loop.clients.remove(client)
    monitor.remove(client.watch)
    connectionEnded()
  }

  // MARK: Requests

  /// Parses the target of a request line, before libmicrohttpd decodes the target in place.
  func receive(_ raw: UnsafeRawBufferPointer, on client: Connection) {
    client.loop.received.add(1)
    let hash = RequestMemo.hash(raw)
    if let known = client.loop.memo.target(raw, hash: hash) {
      client.begin(known)
    } else {
      let target = RequestTarget(
        raw: Array(raw), hash: hash, rules: rules)
      client.loop.memo.remember(target)
      client.begin(target)
    }
  }

  /// Called by libmicrohttpd when the header is complete, once per body chunk, when the request is
  /// complete, and again after a resume. A response queued in the first call closes the connection.
  func handle(
    on client: Connection, _ connection: OpaquePointer, method: UnsafePointer<CChar>,
    version: UnsafePointer<CChar>?, body: UnsafePointer<CChar>?,
    bodySize: UnsafeMutablePointer<Int>
  ) -> MHD_Result {
    switch client.stage {
    case .received:
      client.stage = .headed
      client.startedAt = Clock.nanoseconds()
      client.requestID = Self.requestID(on: connection)
      client.method = Method(method)
      client.isHTTP11 = version.map { Connection.isHTTP11($0) } ?? false
      guard client.method.hasBody else { return .YES }
      return context(of: client, on: connection, method: method).refuseBody() ?? .YES
    case .headed where bodySize.pointee > 0:
      let bytes = UnsafeRawBufferPointer(start: body, count: bodySize.pointee)
      bodySize.pointee = 0
      return context(of: client, on: connection, method: method).take(bytes) ? .YES : .NO
    case .headed:
      client.isActive = true
      client.loop.active.add(1)
      return respondFromMemory(to: client, on: connection, method: method)
        ?? context(of: client, on: connection, method: method).handle()
    case .suspended:
      return context(of: client, on: connection, method: method).conclude()
    case .answered:
      return .YES
    }
  }

  /// Returns the context of the current call.
  func context(
    of client: Connection, on connection: OpaquePointer, method: UnsafePointer<CChar>
  ) -> RequestContext {
    RequestContext(
      handler: self, client: client, connection: connection, methodName: method)
  }

  /// Ends a request whose response was sent, or never will be.
  func completed(on client: Connection, _ connection: OpaquePointer?, isWhole: Bool) {
    let streaming = client.streaming
    if let streaming { client.bodyBytes = streaming.stream.sent }
    if client.isActive {
      if isWhole || streaming != nil { client.loop.bytesSent.add(client.bodyBytes) }
      client.isActive = false
      client.loop.active.add(-1)
    }
    if let request = client.suspendedRequest {
      // libmicrohttpd may detect a disconnect before it calls the handler for the resumed
      // connection.
      supersededRequests.end(request)
      request.abandon()
      clientGone(client, connection)
      client.suspendedRequest = nil
    }
    if let streaming {
      client.streaming = nil
      supersededRequests.end(streaming.stream)
      let cutReason = isWhole ? nil : streaming.stream.cutReason ?? .cancelled
      log(.streamed(streaming, error: cutReason), of: client, on: connection)
    }
    // The connection may be kept alive for long, and a body in memory can take up to 16 MiB.
    if client.body.count > 0 { client.body = RequestBody() }
    client.stage = .received
    client.watch.deadline = Clock.coarseMilliseconds() + keepAliveTimeout
    client.endedRequests += 1
    if client.fault != nil { refuseIfDue(client) }
  }

  private func clientGone(_ client: Connection, _ connection: OpaquePointer?) {
    figures.clientsGone.add()
    log(.gone(isHead: client.method == .head), of: client, on: connection)
  }

  /// Returns the request id that the client or a proxy sent in the first `X-Request-ID`, or a new one if that is not
  /// usable. Does not allocate.
  private static func requestID(on connection: OpaquePointer) -> RequestID {
    guard let value = field("X-Request-ID", on: connection) else { return RequestID() }
    return RequestID(UnsafeRawBufferPointer(start: value, count: strlen(value))) ?? RequestID()
  }
}
