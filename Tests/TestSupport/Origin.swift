// Origin: a web server for tests that does what it is told, the worst included, and remembers what it was asked.

import Glibc
import Model
import Platform

/// An HTTP/1.1 origin on a loopback port of its own, with a thread for each connection.
///
/// ```swift
/// let origin = try Origin()
/// origin.serve("/a.jpg", bytes, headers: ["Cache-Control: max-age=60"])
/// origin.route("/slow", .hold(gate, then: .ok(bytes)))
/// origin.route("/third") { request in request.number < 3 ? .status(503) : .ok(bytes) }
/// origin.url("/a.jpg")          // http://127.0.0.1:43521/a.jpg
/// origin.requests(to: "/a.jpg") // 1
/// ```
/// It stops with its last reference or with `stop()`. What was registered later for a path replaces what was there.
public final class Origin: Sendable {
  /// A request as it came in.
  public struct Request: Sendable {
    /// `GET`.
    public let method: String
    /// Path without the query.
    public let path: String
    /// Path with the query.
    public let target: String
    /// Headers by lower-case name; several of one name joined by `, `.
    public let headers: [String: String]
    /// Which request to this path it is, from 1.
    public let number: Int
    /// Which connection it came over, from 1.
    public let connection: Int
  }

  /// The port that was given to it.
  public let port: Int
  private let address: String
  private let state = OriginState()

  /// Listens on a free port.
  ///
  /// - Parameters:
  ///   - address: `127.0.0.1` or `::1`.
  ///   - port: that of an origin which was stopped, to take its place; 0: any that is free.
  ///   - answers: `false`: connections are taken by the kernel, and nobody ever reads from them.
  /// - Throws: `OriginError` when the address cannot be had.
  public init(on address: String = "127.0.0.1", port: Int = 0, answers: Bool = true) throws {
    self.address = address
    let listener = try OriginSocket.listen(on: address, port: port)
    self.port = listener.port
    state.setListener(listener.descriptor, isAccepting: answers)
    guard answers else { return }
    let state = state
    OriginSocket.detachThread {
      // The descriptor is this thread's to close: closed elsewhere, its number could be another's in the next accept.
      defer { close(listener.descriptor) }
      while let connection = OriginSocket.accept(listener.descriptor) {
        guard let number = state.opened(connection) else { return _ = close(connection) }
        OriginSocket.detachThread {
          OriginConnection(connection, number: number, state: state).run()
          state.ended(connection)
        }
      }
    }
  }

  deinit { stop() }

  /// Closes the port and every connection; what is being held is let go.
  public func stop() { state.stop() }

  /// `http://127.0.0.1:port/path`; with `host`, that name in place of the address.
  public func url(_ path: String, host: String? = nil) -> String {
    let literal = address.contains(":") ? "[\(address)]" : address
    return "http://\(host ?? literal):\(port)\(path)"
  }

  /// Answers 200 with these bytes, always.
  public func serve(
    _ path: String, _ bytes: [UInt8], type: String = "image/jpeg", headers: [String] = []
  ) {
    route(path, .ok(bytes, type: type, headers: headers))
  }

  /// Answers with the same reply, always.
  public func route(_ path: String, _ reply: OriginReply) { route(path) { _ in reply } }

  /// Answers with what the closure makes of each request. Paths without a route are answered 404.
  public func route(_ path: String, _ reply: @escaping @Sendable (Request) -> OriginReply) {
    state.route(path, reply)
  }

  /// How many requests came for this path, answered or not.
  public func requests(to path: String) -> Int { received(at: path).count }

  /// The requests that came for this path, in order.
  public func received(at path: String) -> [Request] { state.received(at: path) }

  /// Requests of all paths so far.
  public var totalRequests: Int { state.totals.requests }
  /// Requests being answered now.
  public var activeRequests: Int { state.totals.active }
  /// The most requests that were being answered at once.
  public var peakRequests: Int { state.totals.peak }
  /// Connections so far.
  public var connections: Int { state.totals.connections }
  /// Connections open now.
  public var openConnections: Int { state.totals.open }
  /// Clients that closed their connection while they were owed an answer.
  public var clientsGone: Int { state.totals.gone }
}

/// Why an origin could not be started.
public struct OriginError: Error {
  /// The call that failed, and errno's text.
  public let description: String
}

/// What the threads of one origin share.
final class OriginState: Sendable {
  struct Totals {
    var requests = 0
    var active = 0
    var peak = 0
    var connections = 0
    var open = 0
    var gone = 0
  }

  private struct Guarded {
    var listener: CInt = -1
    var isAccepting = false
    var routes: [String: @Sendable (Origin.Request) -> OriginReply] = [:]
    var received: [String: [Origin.Request]] = [:]
    var descriptors: Set<CInt> = []
    var totals = Totals()
    var isStopped = false
  }

  private let guarded = Lock(Guarded())

  var totals: Totals { guarded.withLock { $0.totals } }
  var isStopped: Bool { guarded.withLock { $0.isStopped } }

  func setListener(_ descriptor: CInt, isAccepting: Bool) {
    guarded.withLock { ($0.listener, $0.isAccepting) = (descriptor, isAccepting) }
  }

  func route(_ path: String, _ reply: @escaping @Sendable (Origin.Request) -> OriginReply) {
    guarded.withLock { $0.routes[path] = reply }
  }

  func received(at path: String) -> [Origin.Request] {
    guarded.withLock { $0.received[path] ?? [] }
  }

  /// The connection's number, `nil` when the origin has stopped.
  func opened(_ descriptor: CInt) -> Int? {
    guarded.withLock { state in
      guard !state.isStopped else { return nil }
      state.descriptors.insert(descriptor)
      state.totals.connections += 1
      state.totals.open += 1
      return state.totals.connections
    }
  }

  /// Closes under the lock, so that `stop` never shuts down a descriptor that is somebody else's by now.
  func ended(_ descriptor: CInt) {
    guarded.withLock { state in
      state.descriptors.remove(descriptor)
      state.totals.open -= 1
      close(descriptor)
    }
  }

  func begin(
    _ make: (_ number: Int) -> Origin.Request, path: String
  ) -> (Origin.Request, (@Sendable (Origin.Request) -> OriginReply)?) {
    guarded.withLock { state in
      let request = make((state.received[path]?.count ?? 0) + 1)
      state.received[path, default: []].append(request)
      state.totals.requests += 1
      state.totals.active += 1
      state.totals.peak = max(state.totals.peak, state.totals.active)
      return (request, state.routes[path])
    }
  }

  func finish(isGone: Bool) {
    guarded.withLock { state in
      state.totals.active -= 1
      if isGone, !state.isStopped { state.totals.gone += 1 }
    }
  }

  func stop() {
    guarded.withLock { state in
      guard !state.isStopped else { return }
      state.isStopped = true
      // Ends the accepting thread's wait; nobody listens from here on.
      shutdown(state.listener, CInt(SHUT_RDWR))
      if !state.isAccepting { close(state.listener) }
      for descriptor in state.descriptors { shutdown(descriptor, CInt(SHUT_RDWR)) }
    }
  }
}
