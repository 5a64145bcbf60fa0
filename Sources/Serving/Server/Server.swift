// Server: HTTP in, images out. Starts the parts, and stops them in the right order.

import Glibc
import Model
import Platform
import Synchronization
import Telemetry

/// An HTTP server that answers for an `ImageProvider`.
///
/// A server is started once and stopped once. One that is released while running is stopped without a grace time.
public final class Server: Sendable {
  /// The parts of a running server.
  private struct Running: Sendable {
    let listener: Listener
    let loops: EventLoopGroup
    let watcher: ConnectionMonitor
    let handler: RequestHandler
  }

  private let configuration: ServerConfiguration
  private let provider: any ImageProvider
  private let operations: Operations
  private let stats: @Sendable (RequestFigures, Bool) -> Stats
  private let log: Log
  private let counted = ServerFigures()
  private let running = Lock<Running?>(nil)

  /// A server that does not run yet.
  ///
  /// - Parameters:
  ///   - configuration: address and bounds.
  ///   - provider: who has the images.
  ///   - operations: what `/admin` leads to.
  ///   - stats: composes `/stats` from the server's own figures and whether it is draining; called on a thread that
  ///     answers requests, so it must not wait.
  ///   - log: where a line for each request but memory hits goes; for those at `debug`.
  public init(
    configuration: ServerConfiguration, provider: any ImageProvider, operations: Operations,
    stats: @escaping @Sendable (_ requests: RequestFigures, _ isDraining: Bool) -> Stats, log: Log
  ) {
    var configuration = configuration
    configuration.workers = max(configuration.workers, 1)
    configuration.connectionLimit = max(configuration.connectionLimit, 1)
    configuration.minimumReadRate = max(configuration.minimumReadRate, 1)
    self.configuration = configuration
    (self.provider, self.operations) = (provider, operations)
    (self.stats, self.log) = (stats, log)
  }

  deinit {
    if let parts = running.withLock({ $0 }) { Self.shutDown(parts) }
  }

  /// Listens and answers from now on.
  ///
  /// - Throws: `ServerError`, one line for the operator.
  public func start() throws(ServerError) {
    guard Receiving.isPossible else {
      throw .cannotStart(reason: "libmicrohttpd's recv is not the program's own")
    }
    let listener = try Listener(address: configuration.address, port: configuration.port)
    // Fine enough for the shortest of the deadlines, and no more than ten times a second.
    let shortest = min(
      configuration.headerTimeout.wholeMilliseconds, configuration.requestTimeout.wholeMilliseconds,
      configuration.answerTimeout.wholeMilliseconds)
    let watcher = try ConnectionMonitor(
      limit: configuration.maximumActiveRequests, tick: min(max(shortest / 8, 20), 1_000))
    let handler = RequestHandler(
      configuration: configuration, provider: provider, figures: counted, watcher: watcher,
      operations: operations, stats: stats, log: log)
    let loops = try EventLoopGroup(handler: handler, configuration: configuration)
    let parts = Running(listener: listener, loops: loops, watcher: watcher, handler: handler)
    do throws(ServerError) {
      try watcher.start()
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

  /// The port it listens on; 0 while it does not run.
  public var port: Int { running.withLock { $0?.listener.port } ?? 0 }

  /// What was counted so far.
  public var figures: RequestFigures {
    counted.figures(
      limit: configuration.maximumActiveRequests,
      connections: running.withLock { $0 }?.handler.connectionCount ?? 0)
  }

  /// Has `/stats` answered 503, as while draining, and goes on serving: load balancers are to notice.
  public func announceStop() { running.withLock { $0 }?.handler.announceStop() }

  /// Replaces the tokens of operators; without any there is no `/admin`.
  public func setOperatorTokens(_ tokens: [String]) {
    running.withLock { $0 }?.handler.operatorTokens.withLock { $0 = tokens }
  }

  /// Stops accepting and refuses new requests for images with 503 `draining`; what runs goes on, and `/stats` is
  /// answered on connections that are open.
  public func drain() {
    guard let parts = running.withLock({ $0 }) else { return }
    parts.handler.drain()
    parts.watcher.drain()
    parts.listener.stop()
  }

  /// Drains, waits until everything that runs is answered or the grace time is over, answers the rest with 503, and
  /// closes all connections.
  public func stop() async {
    guard let parts = running.withLock({ $0 }) else { return }
    drain()
    let end = ContinuousClock.now + configuration.graceTime
    while counted.active > 0, ContinuousClock.now < end {
      // A cancelled task gives nobody grace.
      guard (try? await Task.sleep(for: .milliseconds(5))) != nil else { break }
    }
    parts.watcher.close(with: .draining)
    let last = ContinuousClock.now + .seconds(1)
    while counted.active > 0, ContinuousClock.now < last {
      guard (try? await Task.sleep(for: .milliseconds(5))) != nil else { break }
    }
    // Two calls of `stop` at once: the second finds nothing left to do.
    guard
      let mine = running.withLock({ running in
        defer { running = nil }
        return running
      })
    else { return }
    Self.shutDown(mine)
    log.info("stopped", ["address": .string(mine.listener.endpoint)])
  }

  /// In this order: nobody comes in, nobody is suspended, no resumption is under way, no thread is left.
  private static func shutDown(_ parts: Running) {
    parts.handler.drain()
    parts.listener.stop()
    parts.watcher.close(with: .draining)
    // Whoever decided an exchange is between that and the end of MHD_resume_connection: microseconds.
    while parts.watcher.waitingCount > 0 { sched_yield() }
    parts.loops.stop()
    parts.watcher.stop()
  }
}
