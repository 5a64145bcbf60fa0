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
  let watcher: ConnectionMonitor
  let stats: @Sendable (RequestFigures, Bool) -> Stats
  /// Whether hits are logged, cached because it is read for each hit.
  let logsHits: Bool
  /// `answerTimeout` in milliseconds.
  let answerTimeout: Int
  /// Milliseconds from the end of a request to the end of the next header: libmicrohttpd's idle
  /// time-out plus the header time-out.
  let keptTimeout: Int
  /// Distinguishes this server's prepared responses from those of another server in the process.
  let serial: UInt64
  private static let serials = Atomic<UInt64>(0)
  private let leaving = Atomic<Bool>(false)
  private let draining = Atomic<Bool>(false)
  /// The operators' tokens; without tokens `/admin` is disabled.
  let operatorTokens: Lock<[String]>
  private let connections = Atomic<Int>(0)
  /// The origins whose pages may read responses.
  let crossOrigin: CrossOrigin
  /// Running requests that a later one may supersede.
  let operationKeys = SupersededRequests()
  let operations: Operations
  /// Read what of large files is not in the page cache.
  let files = BlockingThreads(name: "pictor-send")

  init(
    configuration: ServerConfiguration, provider: any ImageProvider, figures: ServerFigures,
    watcher: ConnectionMonitor, operations: Operations,
    stats: @escaping @Sendable (RequestFigures, Bool) -> Stats, log: Log
  ) {
    self.operations = operations
    self.configuration = configuration
    rules = RequestRules(configuration)
    operatorRules = rules.forOperators
    operatorTokens = Lock(configuration.operatorTokens)
    crossOrigin = CrossOrigin(configuration.corsOrigins)
    self.provider = provider
    self.figures = figures
    self.watcher = watcher
    self.stats = stats
    self.log = log
    answerTimeout = configuration.answerTimeout.wholeMilliseconds
    keptTimeout =
      configuration.idleTimeout.wholeMilliseconds + configuration.headerTimeout.wholeMilliseconds
    logsHits = log.level <= (configuration.loggedRequests == .all ? .info : .debug)
    serial = Self.serials.wrappingAdd(1, ordering: .relaxed).newValue
  }

  /// Whether `/stats` reports that the server stops.
  var isLeaving: Bool { leaving.load(ordering: .relaxed) || isDraining }

  /// Makes `/stats` report that the server stops.
  func announceStop() { leaving.store(true, ordering: .relaxed) }

  /// Whether new requests are refused.
  var isDraining: Bool { draining.load(ordering: .relaxed) }

  /// Refuses further image requests with 503 `draining`.
  func drain() { draining.store(true, ordering: .relaxed) }

  // MARK: Connections

  /// Counts a connection that is about to be passed to libmicrohttpd.
  func connectionAccepted() { connections.wrappingAdd(1, ordering: .relaxed) }

  /// Counts the end of a connection.
  func connectionEnded() { connections.wrappingSubtract(1, ordering: .relaxed) }

  /// The number of open connections.
  var connectionCount: Int { connections.load(ordering: .relaxed) }

  /// A connection begins, on the thread of the worker it stays with.
  func opened(descriptor: CInt, peer: IPAddress?, by worker: EventLoopState) -> Connection {
    let watch = ConnectionWatch(
      descriptor: descriptor,
      deadline: Clock.coarseMilliseconds() + configuration.headerTimeout.wholeMilliseconds)
    watcher.add(watch)
    let client = Connection(worker: worker, watch: watch, peer: peer)
    worker.clients.add(client)
    return client
  }

  /// Removes the state of a connection whose socket is about to be closed.
  func closed(_ client: Connection) {
    client.worker.clients.remove(client)
    watcher.remove(client.watch)
    connectionEnded()
  }

  // MARK: Requests

  /// Parses the target of a request line, before libmicrohttpd decodes the target in place.
  func receive(_ raw: UnsafeRawBufferPointer, on client: Connection) {
    client.worker.received.add(1)
    let hash = RequestMemo.hash(raw)
    if let known = client.worker.memo.target(raw, hash: hash) {
      client.begin(known)
    } else {
      let target = RequestTarget(
        raw: Array(raw), hash: hash, rules: rules)
      client.worker.memo.remember(target)
      client.begin(target)
    }
  }

  /// Called by libmicrohttpd when the header is complete, once per body chunk, when the request is
  /// complete, and again after a resume. A response queued in the first call closes the connection.
  func handle(
    on client: Connection, _ connection: OpaquePointer, method: UnsafePointer<CChar>,
    version: UnsafePointer<CChar>?, upload: UnsafePointer<CChar>?,
    uploadSize: UnsafeMutablePointer<Int>
  ) -> MHD_Result {
    switch client.stage {
    case .received:
      client.stage = .headed
      client.startedAt = Clock.nanoseconds()
      client.requestID = Self.requestID(on: connection)
      client.method = Method(method)
      client.isHTTP11 = version.map { Connection.isHTTP11($0) } ?? false
      guard client.method.bringsBody else { return .YES }
      return RequestContext(handler: self, client: client, connection: connection, method: method)
        .refuseBody() ?? .YES
    case .headed where uploadSize.pointee > 0:
      let bytes = UnsafeRawBufferPointer(start: upload, count: uploadSize.pointee)
      uploadSize.pointee = 0
      let exchanging = RequestContext(
        handler: self, client: client, connection: connection, method: method)
      return exchanging.take(bytes) ? .YES : .NO
    case .headed:
      client.isActive = true
      client.worker.active.add(1)
      return answerHit(on: client, connection, method: method)
        ?? RequestContext(handler: self, client: client, connection: connection, method: method)
        .answer()
    case .suspended:
      return RequestContext(handler: self, client: client, connection: connection, method: method)
        .conclude()
    case .answered:
      return .YES
    }
  }

  /// The answer was sent, or never will be.
  func completed(on client: Connection, _ connection: OpaquePointer?, isWhole: Bool) {
    let streaming = client.streaming
    if let streaming { client.bodyBytes = streaming.stream.sent }
    if client.isActive {
      if isWhole || streaming != nil { client.worker.bytesSent.add(client.bodyBytes) }
      client.isActive = false
      client.worker.active.add(-1)
    }
    if let exchange = client.exchange {
      // libmicrohttpd may detect a disconnect before it calls the handler for the resumed
      // connection.
      operationKeys.end(exchange)
      exchange.abandon()
      clientGone(client, connection)
      client.exchange = nil
    }
    if let streaming {
      client.streaming = nil
      operationKeys.end(streaming.stream)
      let cutReason = isWhole ? nil : streaming.stream.cutReason ?? .cancelled
      log(.streamed(streaming, error: cutReason), of: client, on: connection)
    }
    // The connection may be kept alive for long, and a body in memory can take up to 16 MiB.
    if client.upload.count > 0 { client.upload = RequestBody() }
    client.stage = .received
    client.watch.deadline = Clock.coarseMilliseconds() + keptTimeout
    client.endedRequests += 1
    if client.fault != nil { refuseIfDue(client) }
  }

  private func clientGone(_ client: Connection, _ connection: OpaquePointer?) {
    figures.clientsGone.add()
    log(.gone(isHead: client.method == .head), of: client, on: connection)
  }

  /// What the client or a proxy calls the request on a connection, where that can be taken over; else a new name. Of
  /// several lines the first counts. Allocates nothing.
  private static func requestID(on connection: OpaquePointer) -> RequestID {
    guard let value = header("X-Request-ID", of: connection) else { return RequestID() }
    return RequestID(UnsafeRawBufferPointer(start: value, count: strlen(value))) ?? RequestID()
  }
}
