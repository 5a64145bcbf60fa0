// Server: starts the parts of the HTTP server, and stops them in the right order.

import Glibc
import Model
import Platform
import Synchronization
import Telemetry

/// An HTTP server that serves the images of an `ImageProvider`.
///
/// Start and stop a server once. Releasing a running server stops it without a grace period.
public final class Server: Sendable {
  /// The parts of a running server.
  private struct Running: Sendable {
    let listener: Listener
    let loops: EventLoopGroup
    let monitor: ConnectionMonitor
    let handler: RequestHandler
  }

  private let configuration: ServerConfiguration
  private let provider: any ImageProvider
  private let services: AdminServices
  private let stats: @Sendable (RequestFigures, Bool) -> Stats
  private let log: Log
  private let counted = ServerFigures()
  private let running = Lock<Running?>(nil)

  /// Creates a server that is not running.
  ///
  /// - Parameters:
  ///   - configuration: address and limits.
  ///   - provider: provides the images.
  ///   - services: the services behind `/admin`.
  ///   - stats: composes `/stats` from the request figures and the draining flag. Runs on an event
  ///     loop, so it must not block.
  ///   - log: receives a line per request; memory hits are logged at `debug` only.
  public init(
    configuration: ServerConfiguration, provider: any ImageProvider, services: AdminServices,
    stats: @escaping @Sendable (_ requests: RequestFigures, _ isDraining: Bool) -> Stats, log: Log
  ) {
    var configuration = configuration
    configuration.workers = max(configuration.workers, 1)
    configuration.connectionLimit = max(configuration.connectionLimit, 1)
    configuration.minimumReadRate = max(configuration.minimumReadRate, 1)
    self.configuration = configuration
    self.provider = provider
    self.services = services
    self.stats = stats
    self.log = log
  }

  deinit {
    if let parts = running.withLock({ $0 }) { Self.shutDown(parts) }
  }

  /// Starts to listen and to serve.
  ///
  /// - Throws: `ServerError`, one line for the operator.
  public func start() throws(ServerError) {
    guard Receiving.isPossible else {
      throw .cannotStart(reason: "libmicrohttpd's recv is not the program's own")
    }
    let listener = try Listener(address: configuration.address, port: configuration.port)
    // An eighth of the shortest deadline, between 20 ms and one second.
    let shortest = min(
      configuration.headerTimeout.wholeMilliseconds, configuration.requestTimeout.wholeMilliseconds,
      configuration.answerTimeout.wholeMilliseconds)
    let monitor = try ConnectionMonitor(
      limit: configuration.maximumActiveRequests, tick: min(max(shortest / 8, 20), 1_000))
    let handler = RequestHandler(
      configuration: configuration, provider: provider, figures: counted, monitor: monitor,
      services: services, stats: stats, log: log)
    let loops = try EventLoopGroup(handler: handler, configuration: configuration)
    let parts = Running(listener: listener, loops: loops, monitor: monitor, handler: handler)
    do throws(ServerError) {
      try monitor.start()
      let limit = configuration.connectionLimit
      try listener.start(
        hasRoom: { handler.connectionCount < limit },
        accepted: { accepted in
          handler.connectionAccepted()
          loops.add(accepted)
        })
    } catch {
      Self.shutDown(parts)
      throw error
    }
    running.withLock { $0 = parts }
    if configuration.headStyle != .block {
      log.warning(
        "hits are slower: this version of libmicrohttpd is not the tested one",
        ["version": .string(HeadStyle.libraryVersion), "tested": .string(HeadStyle.testedVersion)])
    }
    log.info("serving", ["address": .string(listener.endpoint)])
  }

  /// The port the server listens on; 0 while it is not running.
  public var port: Int { running.withLock { $0?.listener.port } ?? 0 }

  /// The request figures so far.
  public var figures: RequestFigures {
    counted.figures(
      limit: configuration.maximumActiveRequests,
      connections: running.withLock { $0 }?.handler.connectionCount ?? 0)
  }

  /// Makes `/stats` respond with 503 while the server keeps serving, so that load balancers notice
  /// the stop.
  public func announceStop() { running.withLock { $0 }?.handler.announceStop() }

  /// Replaces the operators' tokens. Without tokens `/admin` is disabled.
  public func setOperatorTokens(_ tokens: [String]) {
    running.withLock { $0 }?.handler.operatorTokens.withLock { $0 = tokens }
  }

  /// Stops accepting, and refuses new image requests with 503 `draining`. Running requests
  /// continue, and open connections can still get `/stats`.
  public func drain() {
    guard let parts = running.withLock({ $0 }) else { return }
    parts.handler.drain()
    parts.monitor.drain()
    parts.listener.stop()
  }

  /// Drains, and waits for running requests until the grace period ends. Then answers the rest with
  /// 503 and closes all connections.
  public func stop() async {
    guard let parts = running.withLock({ $0 }) else { return }
    drain()
    let end = ContinuousClock.now + configuration.graceTime
    while counted.active > 0, ContinuousClock.now < end {
      // A cancelled task skips the grace period.
      guard (try? await Task.sleep(for: .milliseconds(5))) != nil else { break }
    }
    parts.monitor.close(with: .draining)
    let last = ContinuousClock.now + .seconds(1)
    while counted.active > 0, ContinuousClock.now < last {
      guard (try? await Task.sleep(for: .milliseconds(5))) != nil else { break }
    }
    // Of two concurrent calls of `stop`, only the first shuts down.
    guard
      let mine = running.withLock({ running in
        defer { running = nil }
        return running
      })
    else { return }
    Self.shutDown(mine)
    log.info("stopped", ["address": .string(mine.listener.endpoint)])
  }

  /// Stops the parts in order: accept nothing, end suspended requests, wait for resumptions, stop
  /// the loops.
  private static func shutDown(_ parts: Running) {
    parts.handler.drain()
    parts.listener.stop()
    parts.monitor.close(with: .draining)
    // Wait for threads that are still inside MHD_resume_connection, which takes microseconds.
    while parts.monitor.waitingCount > 0 { sched_yield() }
    parts.loops.stop()
    parts.monitor.stop()
  }
}
