// Front: a listener with all that its connections need.

import Core
import Glibc
import Synchronization

/// What all listeners of a server share.
struct SharedParts: Sendable {
  let provider: any ImageProvider
  let services: AdminServices
  let figures: ServerFigures
  let figuresCache: FiguresCache
  let metricsCache: FiguresCache, openMetricsCache: FiguresCache
  let gate: OperatorGate
  let log: Log
}

/// A listener with its own loops, monitor and limits: a flood of one front spares another.
///
/// Start and shut down a front once.
final class Front: Sendable {
  let listener: Listener
  let handler: RequestHandler
  let loops: [EventLoop]
  /// Accepted sockets so far.
  private let added = Atomic<Int>(0)
  private let monitor: ConnectionMonitor

  /// Starts the event loops. Nothing is accepted before `start`.
  init(
    for audience: Audience, on listener: Listener, configuration: ServerConfiguration,
    shared: SharedParts
  ) throws(ServerError) {
    self.listener = listener
    monitor = try ConnectionMonitor(
      limit: configuration.maximumActiveRequests, tick: configuration.deadlineTick,
      connections: ConnectionTable(
        limits: configuration.connectionLimits(for: audience), leastPace: configuration.leastPace,
        clients: configuration.countedClients, figures: shared.figures))
    handler = RequestHandler(
      configuration: configuration, shared: shared, monitor: monitor, audience: audience)
    MHDDaemon.reportPanics(to: handler.log)
    var loops: [EventLoop] = []
    do throws(ServerError) {
      for index in 0..<configuration.workers {
        let loop = try EventLoop(index: index, handler: handler, configuration: configuration)
        loops.append(loop)
        try loop.start()
      }
    } catch {
      for loop in loops { loop.stop() }
      throw error
    }
    self.loops = loops
  }

  /// Starts to accept. On failure, the front must be shut down.
  func start() throws(ServerError) {
    let audience = handler.audience
    try monitor.start(name: audience.threadName("watcher"))
    let refusal = ConnectionRefusal()
    try listener.start(
      name: audience.threadName("listener"),
      offer: { [self] accepted, isLast in
        let admission = handler.monitor.connections.admit(accepted.peer, isLast: isLast)
        switch admission {
        case .admitted:
          handler.connections.add(1)
          // To the loops in turn.
          let turn = added.wrappingAdd(1, ordering: .relaxed).oldValue
          loops[turn % loops.count].add(accepted)
        case .refused: refusal.answer(accepted, by: handler)
        case .full: break
        }
        return admission
      })
  }

  /// Replaces what the configuration decides about requests that begin from now on.
  func apply(_ configuration: ServerConfiguration) {
    monitor.set(limit: configuration.maximumActiveRequests, tick: configuration.deadlineTick)
    monitor.connections.set(
      configuration.connectionLimits(for: handler.audience), leastPace: configuration.leastPace,
      clients: configuration.countedClients)
    for cache in [handler.figuresCache, handler.metricsCache, handler.openMetricsCache] {
      cache.set(lifetime: configuration.statsLifetime)
    }
    handler.setPolicy(configuration)
  }

  /// Refuses new work with 503 `draining`, and ends event streams. Connections are still accepted.
  func refuseWork() {
    handler.refuseWork()
    monitor.drain()
  }

  /// Stops accepting and refuses new work. Running requests continue, and `/stats` answers.
  func drain() {
    handler.drain()
    monitor.drain()
    listener.stop()
  }

  /// Stops accepting, and serves what was accepted: each connection is closed behind its last
  /// request. A new one has `firstRequestTime` for the beginning of a request. Ends at `end`.
  ///
  /// Nothing is lost if other processes hold the sockets. Requests are answered as usual.
  func finish(until end: ContinuousClock.Instant) async {
    handler.closeConnections()
    monitor.drain()
    listener.stop()
    while handler.connections.value > 0, ContinuousClock.now < end {
      monitor.connections.closeIdle(
        at: Clock.coarseMilliseconds(),
        patience: handler.latestPolicy.configuration.firstRequestTime.wholeMilliseconds)
      guard (try? await Task.sleep(for: .milliseconds(5))) != nil else { return }
    }
  }

  /// Waits until no request runs, or until `end`. A cancelled task does not wait.
  func waitUntilIdle(until end: ContinuousClock.Instant) async {
    while loops.contains(where: { $0.active > 0 }), ContinuousClock.now < end {
      guard (try? await Task.sleep(for: .milliseconds(5))) != nil else { return }
    }
  }

  /// Answers the waiting requests with 503, and waits at most a second for the answers to leave.
  func endRequests() async {
    monitor.close(with: .draining)
    await waitUntilIdle(until: .now + .seconds(1))
  }

  /// Stops the parts in order: accepting, suspended requests, resumptions, event loops.
  func shutDown() {
    handler.drain()
    listener.stop()
    monitor.close(with: .draining)
    // Wait for threads that are still inside MHD_resume_connection, which takes microseconds.
    while monitor.waitingCount > 0 { sched_yield() }
    for loop in loops { loop.stop() }
    monitor.stop()
  }
}
