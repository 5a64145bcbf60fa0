// Server: starts the parts of the HTTP server, and stops them in the right order.

import Core
import Glibc
import Synchronization

/// An HTTP server that serves the images of an `ImageProvider`.
///
/// Start and stop a server once. Releasing a running server stops it without a grace period.
public final class Server: Sendable {
  /// The listeners of a running server, with their parts.
  private struct Running: Sendable {
    /// The listener of clients.
    let clients: Front
    /// The operators' listener, if there is one.
    let operators: Front?

    var all: [Front] { [clients, operators].compactMap { $0 } }
  }

  private let current: Lock<ServerConfiguration>
  private var configuration: ServerConfiguration { current.withLock { $0 } }
  private let provider: any ImageProvider
  private let services: AdminServices
  private let stats: @Sendable (Figures, Bool) -> Figures
  private let log: Log
  private let counted = ServerFigures()
  private let gate: OperatorGate
  private let running = Lock<Running?>(nil)
  private var fronts: [Front] { running.withLock { $0 }?.all ?? [] }

  /// Creates a server that is not running.
  ///
  /// - Parameters:
  ///   - stats: composes `/stats` from the request figures and the draining flag, at most once in
  ///     `statsLifetime`. Runs on an event loop, so it must not block.
  ///   - log: receives a line per request; memory hits are logged at `debug` only.
  public init(
    configuration: ServerConfiguration, provider: any ImageProvider, services: AdminServices,
    stats: @escaping @Sendable (_ requests: Figures, _ isDraining: Bool) -> Figures, log: Log
  ) {
    var configuration = configuration
    configuration.workers = max(configuration.workers, 1)
    configuration.connectionLimit = max(configuration.connectionLimit, 1)
    current = Lock(configuration)
    self.provider = provider
    self.services = services
    self.stats = stats
    self.log = log
    gate = OperatorGate(configuration.operators)
  }

  deinit {
    if let parts = running.withLock({ $0 }) { Self.shutDown(parts) }
  }

  /// Starts to listen and to serve.
  ///
  /// - Throws: `ServerError`, one line for the operator.
  public func start() throws(ServerError) {
    let configuration = configuration
    guard Receiving.isPossible else {
      throw .cannotStart(reason: "libmicrohttpd's recv is not the program's own")
    }
    // Before threads start: all addresses, or none.
    let inherited = configuration.inherited
    let clientListener = try Listener(
      try Self.sockets(
        inherited.clients, on: configuration.settings.clientAddresses,
        mode: configuration.socketMode))
    let operatorSockets = try Self.sockets(
      inherited.operators, on: [configuration.operatorAddress].compactMap { $0 },
      mode: configuration.socketMode)
    let operatorListener =
      operatorSockets.isEmpty ? nil : try Listener(operatorSockets)
    let lifetime = configuration.statsLifetime
    let addresses = (clientListener.addresses + (operatorListener?.addresses ?? []))
      .map(\.description)
    let compute = {
      @Sendable [stats, counted, current] isDraining in
      let limit = current.withLock { $0.maximumActiveRequests }
      var all = stats(counted.figures(limit: limit), isDraining)
      all.add("addresses", Figure.texts(addresses))
      return all
    }
    let shared = SharedParts(
      provider: provider, services: services, figures: counted,
      figuresCache: FiguresCache(lifetime: lifetime, compute: compute),
      metricsCache: FiguresCache(
        lifetime: lifetime, encode: { MetricText.bytes(of: $0) }, compute: compute),
      openMetricsCache: FiguresCache(
        lifetime: lifetime, encode: { MetricText.bytes(of: $0, as: .openMetrics) },
        compute: compute),
      gate: gate, log: log)
    let clients = try Front(
      for: operatorListener == nil ? .everyone : .clients, on: clientListener,
      configuration: configuration, shared: shared)
    var operators: Front?
    do throws(ServerError) {
      if let operatorListener {
        operators = try Front(
          for: .operators, on: operatorListener, configuration: configuration.forOperators,
          shared: shared)
      }
      // First, so that operators can watch the start.
      try operators?.start()
      try clients.start()
    } catch {
      operators?.shutDown()
      clients.shutDown()
      throw error
    }
    running.withLock { $0 = Running(clients: clients, operators: operators) }
    if configuration.headStyle != .block {
      log.warning(
        "hits are slower: this version of libmicrohttpd is untested",
        fields: [
          "version": .string(HeadStyle.libraryVersion),
          "tested": .string(HeadStyle.testedVersions.joined(separator: ", ")),
        ])
    }
    if let operators { report("serving operators", operators.listener) }
    report("serving", clients.listener)
  }

  private func report(_ message: String, _ listener: Listener) {
    log.info(
      message,
      fields: [
        "address": .string(listener.endpoints),
        "inherited": .string(ifPresent: listener.isInherited ? "yes" : nil),
      ])
  }

  /// Returns the inherited sockets, or else listens on all addresses.
  private static func sockets(
    _ inherited: [CInt], on addresses: [ListenAddress], mode: Int
  ) throws(ServerError) -> [ListeningSocket] {
    inherited.isEmpty
      ? try ListeningSocket.all(on: addresses, mode: mode)
      : try ListeningSocket.inherited(inherited)
  }

  /// Where the server listens, clients' addresses first; empty while it is not running.
  public var addresses: [ListenAddress] {
    fronts.flatMap(\.listener.addresses)
  }

  /// The port the server listens on for clients; 0 while it is not running.
  public var port: Int { running.withLock { $0?.clients.listener.port } ?? 0 }

  /// The port of the operators' listener; `nil` without one.
  public var operatorPort: Int? { running.withLock { $0?.operators?.listener.port } }

  /// The request figures so far.
  public var figures: Figures {
    counted.figures(limit: configuration.maximumActiveRequests)
  }

  /// Makes `/stats` respond with 503 while the server keeps serving, so that load balancers notice
  /// the stop.
  public func announceStop() {
    for front in fronts { front.handler.announceStop() }
  }

  /// Returns whether every event loop begins a round within `time`, which takes microseconds unless
  /// one is blocked. Blocks the calling thread. A stopped server has no loops to wait for.
  public func responds(within time: Duration) -> Bool {
    let end = ContinuousClock.now + time
    let loops = fronts.flatMap(\.loops)
    let before = loops.map(\.rounds)
    for loop in loops { loop.wake() }
    while !zip(loops, before).allSatisfy({ $0.rounds != $1 }) {
      guard ContinuousClock.now < end else { return false }
      usleep(1_000)
    }
    return true
  }

  /// The processor time of all event loops together; 0 while the server is not running.
  public var loopTime: Duration {
    fronts.flatMap(\.loops).reduce(.zero) { $0 + $1.processorTime }
  }

  /// Lets all event loops run on these cores only. Tries all, and then throws the last error.
  ///
  /// - Throws: `EINVAL` if the server may use none of these cores (cpuset(7)).
  public func confineLoops(to cores: Cores) throws(SystemError) {
    var failure: SystemError?
    for loop in fronts.flatMap(\.loops) {
      do throws(SystemError) { try loop.confine(to: cores) } catch { failure = error }
    }
    if let failure { throw failure }
  }

  /// Applies another configuration to requests that begin from now on, and to operators. Listeners,
  /// threads and what they share stay as they are.
  public func apply(_ wanted: ServerConfiguration) {
    let next = current.withLock { running in
      var next = wanted
      next.id = running.id
      next.connectionLimit = running.connectionLimit
      next.workers = running.workers
      next.inherited = running.inherited
      next.spans = running.spans
      running = next
      return next
    }
    gate.set(next.operators)
    guard let parts = running.withLock({ $0 }) else { return }
    parts.clients.apply(next)
    parts.operators?.apply(next.forOperators)
  }

  /// Stops accepting clients, and refuses new work with 503 `draining`. Running requests continue,
  /// and open connections can still get `/stats`. The operators' listener still accepts.
  public func drain() {
    guard let parts = running.withLock({ $0 }) else { return }
    // First: once clients cannot connect, every listener says that the server drains.
    parts.operators?.refuseWork()
    parts.clients.drain()
  }

  /// Drains, and waits for running requests until the grace period ends. Then answers the rest with
  /// 503 and closes all connections, last those of the operators' listener. On inherited sockets,
  /// it first serves all that was accepted, without refusing work.
  public func stop() async {
    guard let parts = running.withLock({ $0 }) else { return }
    let end = ContinuousClock.now + configuration.graceTime
    if parts.clients.listener.isInherited { await parts.clients.finish(until: end) }
    drain()
    await parts.clients.waitUntilIdle(until: end)
    await parts.clients.endRequests()
    await parts.operators?.waitUntilIdle(until: end)
    parts.operators?.drain()
    await parts.operators?.endRequests()
    // Of two concurrent calls of `stop`, only the first shuts down.
    guard let mine = running.withLock({ $0.take() }) else { return }
    Self.shutDown(mine)
    log.info("stopped", fields: ["address": .string(mine.clients.listener.endpoints)])
  }

  private static func shutDown(_ parts: Running) {
    for front in parts.all { front.shutDown() }
  }
}
