// RequestHandler: handles the callbacks of a request, from its first line to its last byte.

import CMicrohttpd
import Core
import Glibc
import Synchronization

/// Handles requests. libmicrohttpd calls it on the event loops' threads: `opened`; for each request
/// `receive`, `handle` (at least twice) and `completed`; then `closed`.
final class RequestHandler: Sendable {
  let log: Log
  /// What the configuration decides. Each event loop has a copy.
  let latest: Lock<RequestPolicy>
  /// The number of the latest policy, which each event loop compares with its own.
  let newestSerial: Atomic<UInt64>
  /// The keys of targets that had hits.
  let knownTargets: KnownTargets
  let provider: any ImageProvider
  let figures: ServerFigures
  /// Notices clients that disconnect, and enforces deadlines.
  let monitor: ConnectionMonitor
  /// The JSON of `/stats`.
  let figuresCache: FiguresCache
  /// The texts of `/metrics`.
  let metricsCache: FiguresCache, openMetricsCache: FiguresCache
  /// Whom the listener serves.
  let audience: Audience
  /// Receives the spans of recorded requests; `nil`: none is recorded.
  let spans: (any SpanSink)?
  /// Distinguishes this server's prepared responses from those of another server in the process.
  let serial: UInt64
  private static let serials = Atomic<UInt64>(0)
  private let isStopAnnounced = Atomic<Bool>(false)
  private let draining = Atomic<Bool>(false)
  private let closing = Atomic<Bool>(false)
  /// Recognizes operators; without operators `/admin` is disabled.
  let gate: OperatorGate
  let connections: Gauge
  /// What each client may have done.
  let shares: ClientShares
  /// Running requests that a later one may supersede.
  let supersededRequests = SupersededRequests()
  let unlistedProxies = UnlistedProxies()
  let services: AdminServices
  /// Threads that read the parts of large files that are not in the page cache.
  let fileReaders = BlockingThreads(name: "pictor-send")

  init(
    configuration: ServerConfiguration, shared: SharedParts, monitor: ConnectionMonitor,
    audience: Audience = .everyone
  ) {
    self.audience = audience
    services = shared.services
    gate = shared.gate
    figuresCache = shared.figuresCache
    metricsCache = shared.metricsCache
    openMetricsCache = shared.openMetricsCache
    provider = shared.provider
    figures = shared.figures
    connections =
      audience == .operators ? shared.figures.operatorConnections : shared.figures.connections
    log = shared.log
    shares = ClientShares(
      configuration.clientBudgets,
      clients: configuration.countedClients, figures: shared.figures)
    let policy = RequestPolicy(configuration, for: audience, logging: log.level)
    latest = Lock(policy)
    newestSerial = Atomic(policy.serial)
    knownTargets = KnownTargets(limit: configuration.knownTargets)
    shared.figures.add(knownTargets)
    self.monitor = monitor
    spans = configuration.spans
    serial = Self.serials.wrappingAdd(1, ordering: .relaxed).newValue
  }

  /// Whether `/stats` reports that the server stops.
  var announcesStop: Bool { isStopAnnounced.load(ordering: .relaxed) || isDraining }

  /// Makes `/stats` report that the server stops.
  func announceStop() { isStopAnnounced.store(true, ordering: .relaxed) }

  /// Whether new requests are refused.
  var isDraining: Bool { draining.load(ordering: .relaxed) }

  var closesConnections: Bool { closing.load(ordering: .relaxed) }

  /// Refuses further work with 503 `draining`.
  func refuseWork() { draining.store(true, ordering: .relaxed) }

  /// Closes connections with their next response.
  func closeConnections() { closing.store(true, ordering: .relaxed) }

  /// Refuses further work, and closes connections with their next response.
  func drain() {
    refuseWork()
    closeConnections()
  }

  // MARK: Connections

  /// Counts the end of a connection that was accepted and not opened.
  func connectionLost(_ accepted: EventLoop.Accepted) {
    monitor.connections.cancel(accepted.peer)
    connections.add(-1)
  }

  /// Creates the state of a new connection, on the thread of its event loop.
  func opened(descriptor: CInt, peer: IPAddress?, on loop: EventLoopState) -> Connection {
    let now = Clock.coarseMilliseconds()
    let policy = policy(of: loop)
    let watch = monitor.connections.open(
      descriptor: descriptor, address: peer, at: now, deadline: now + policy.headerTimeout)
    let client = Connection(loop: loop, watch: watch, peer: peer, policy: policy)
    if policy.expectsProxyHeader(from: peer) { client.proxyHeader = [] }
    loop.clients.add(client)
    return client
  }

  /// Removes the state of a connection whose socket is about to be closed.
  func closed(_ client: Connection) {
    client.loop.clients.remove(client)
    monitor.connections.remove(client.watch)
    connections.add(-1)
  }

  // MARK: Requests

  /// Takes the target of a request line, before libmicrohttpd decodes the target in place.
  func receive(_ raw: UnsafeRawBufferPointer, on client: Connection) {
    client.loop.received.add(1)
    let policy = policy(of: client.loop)
    if client.policy !== policy { client.policy = policy }
    client.begin(raw)
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
      guard client.framing.hasChecked(requestAfter: client.endedRequests) else {
        log.error("a connection is closed: libmicrohttpd read a request past the framing check")
        return .NO
      }
      client.stage = .headed
      client.startedAt = Clock.nanoseconds()
      client.requestID = Self.requestID(on: connection)
      client.method = Method(method)
      client.host = Self.host(among: client.policy.endpoints.hosts, on: connection)
      client.isHTTP11 = version.map { Connection.isHTTP11($0) } ?? false
      beginTrace(of: client, on: connection)
      guard client.method.hasBody else { return .YES }
      return context(of: client, on: connection, method: method).refuseBody() ?? .YES
    case .headed where bodySize.pointee > 0:
      let bytes = UnsafeRawBufferPointer(start: body, count: bodySize.pointee)
      bodySize.pointee = 0
      return context(of: client, on: connection, method: method).take(bytes) ? .YES : .NO
    case .headed:
      client.isActive = true
      client.loop.active.add(1)
      if client.policy.countsRequests, let error = excess(of: client, on: connection) {
        return context(of: client, on: connection, method: method).refuse(error)
      }
      guard
        let hit = respondFromMemory(to: client, on: connection, method: method)
          ?? respondFromDisk(to: client, on: connection)
      else { return context(of: client, on: connection, method: method).handle() }
      if client.isMonitored {
        client.isMonitored = false
        monitor.forget(client.watch.descriptor)
      }
      return hit
    case .suspended:
      return context(of: client, on: connection, method: method).conclude()
    case .answered:
      return .YES
    }
  }

  /// Returns the place in `hosts`, from 1, of the host that a request names; 0 if it has none.
  private static func host(among hosts: [String], on connection: OpaquePointer) -> Int {
    guard !hosts.isEmpty, let named = field("Host", on: connection) else { return 0 }
    let host = String(cString: named).prefix { $0 != ":" }.lowercased()
    return hosts.firstIndex(of: host).map { $0 + 1 } ?? 0
  }

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
      figures.clientsGone.add()
      log(.gone(client.method), of: client, on: connection)
      client.suspendedRequest = nil
    }
    if let streaming {
      client.streaming = nil
      if streaming.stream.hasWaited { client.isMonitored = true }
      supersededRequests.end(streaming.stream)
      let cutReason = isWhole ? nil : streaming.stream.cutReason ?? .cancelled
      log(.streamed(streaming, error: cutReason), of: client, on: connection)
    }
    if client.trace.isRead { endTrace(of: client, on: connection, isWhole: isWhole) }
    // The connection may be kept alive for long, and a body in memory can take up to 16 MiB.
    if client.body.count > 0 { client.body = RequestBody() }
    if client.verdict != nil { client.verdict = nil }
    client.stage = .received
    client.endedRequests += 1
    let now = Clock.coarseMilliseconds()
    if client.isWaiting, client.fault == nil { client.watch.wait(since: now) }
    client.watch.deadline =
      now
      + (client.framing.isBetweenRequests
        ? client.policy.idleTimeout : client.policy.headerTimeout)
    if client.fault != nil { refuseIfDue(client) }
  }

  /// Returns the request id that the client or a proxy sent in the first `X-Request-ID`, or a new
  /// one if that is not usable. Does not allocate.
  private static func requestID(on connection: OpaquePointer) -> RequestID {
    guard let value = field("X-Request-ID", on: connection) else { return RequestID() }
    return RequestID(UnsafeRawBufferPointer(start: value, count: strlen(value))) ?? RequestID()
  }
}
