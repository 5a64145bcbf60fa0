// Origin: a web server for tests that sends given replies and records its requests.

import Core
import Glibc

/// An HTTP/1.1 origin on a loopback port of its own, with one thread per connection.
///
/// ```swift
/// let origin = try Origin()
/// origin.serve("/a.jpg", bytes, headers: ["Cache-Control: max-age=60"])
/// origin.route("/slow", .hold(gate, then: .ok(bytes)))
/// origin.route("/third") { request in request.number < 3 ? .status(503) : .ok(bytes) }
/// origin.url("/a.jpg")          // http://127.0.0.1:43521/a.jpg
/// origin.requests(to: "/a.jpg") // 1
/// ```
/// The origin stops with its last reference or with `stop()`. A later route for a path replaces the
/// earlier one.
public final class Origin: Sendable {
  /// A request as received.
  public struct Request: Sendable {
    /// The request method, such as `GET`.
    public let method: String
    /// The path without the query.
    public let path: String
    /// The path with the query.
    public let target: String
    /// The headers by lower-case name; several values of one name are joined by `, `.
    public let headers: [String: String]
    /// The body, if the request has a `Content-Length`.
    public let body: [UInt8]
    /// The number of this request among those to its path, from 1.
    public let number: Int
    /// The number of the connection, from 1.
    public let connection: Int
  }

  /// The port on which the origin listens.
  public let port: Int
  private let address: String
  private let state = OriginState()
  /// A socket that does not listen and keeps the port from other tests, until a restart.
  private let place: OwnedDescriptor

  /// Listens on a loopback address.
  ///
  /// - Parameters:
  ///   - address: `127.0.0.1` or `::1`.
  ///   - port: The port of a stopped origin that this one replaces; 0 for any free port.
  ///   - answers: Whether connections are accepted; if not, the kernel completes them but no data
  ///     is read.
  /// - Throws: `OriginError` if the address is not available.
  public init(on address: String = "127.0.0.1", port: Int = 0, answers: Bool = true) throws {
    self.address = address
    let place = try OriginSocket.bind(to: address, port: port)
    self.place = OwnedDescriptor(owning: place.descriptor)
    self.port = place.port
    let listener = try OriginSocket.bind(to: address, port: place.port)
    guard listen(listener.descriptor, 1_024) == 0 else {
      close(listener.descriptor)
      throw OriginError(description: "an origin on \(address): errno \(errno)")
    }
    state.setListener(listener.descriptor, isAccepting: answers)
    guard answers else { return }
    let state = state
    OriginSocket.detachThread {
      // Only this thread closes the descriptor: if another thread did, `accept` could use a reused
      // number.
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

  /// Closes every connection, refuses further ones, releases held replies, and keeps the port.
  public func stop() { state.stop() }

  /// Returns `http://127.0.0.1:port/path`, with `host` in place of the address if given.
  public func url(_ path: String, host: String? = nil) -> String {
    let literal = address.contains(":") ? "[\(address)]" : address
    return "http://\(host ?? literal):\(port)\(path)"
  }

  /// Replies 200 with these bytes to every request.
  public func serve(
    _ path: String, bytes: [UInt8], type: String = "image/jpeg", headers: [String] = []
  ) {
    route(path, to: .ok(bytes, type: type, headers: headers))
  }

  /// Sends the same reply to every request.
  public func route(_ path: String, to reply: OriginReply) { route(path) { _ in reply } }

  /// Sends the reply that the closure returns for each request. Paths without a route get a 404.
  public func route(_ path: String, to reply: @escaping @Sendable (Request) -> OriginReply) {
    state.route(path, to: reply)
  }

  /// Sends the reply that the closure returns for each request whose path has no route.
  public func routeOthers(to reply: @escaping @Sendable (Request) -> OriginReply) {
    state.routeOthers(to: reply)
  }

  /// Returns the number of requests for this path, with or without a reply.
  public func requests(to path: String) -> Int { received(at: path).count }

  /// Returns the requests for this path, in order.
  public func received(at path: String) -> [Request] { state.received(at: path) }

  /// The number of requests for all paths so far.
  public var totalRequests: Int { state.totals.requests }
  /// The number of requests in progress.
  public var activeRequests: Int { state.totals.active }
  /// The peak number of concurrent requests.
  public var peakRequests: Int { state.totals.peak }
  /// The number of connections so far.
  public var connections: Int { state.totals.connections }
  /// The number of open connections.
  public var openConnections: Int { state.totals.open }
  /// The number of clients that closed their connection before their reply was complete.
  public var clientsGone: Int { state.totals.gone }
}

/// The reason why an origin failed to start.
public struct OriginError: Error {
  /// The failed call, with the text of its errno.
  public let description: String
}

/// The state shared by the threads of one origin.
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
    var others: (@Sendable (Origin.Request) -> OriginReply)?
    var received: [String: [Origin.Request]] = [:]
    var descriptors: Set<CInt> = []
    var totals = Totals()
    var isStopped = false
  }

  private let guarded = Lock(Guarded())

  var totals: Totals { guarded.withLock { $0.totals } }
  var isStopped: Bool { guarded.withLock { $0.isStopped } }

  func setListener(_ descriptor: CInt, isAccepting: Bool) {
    guarded.withLock {
      $0.listener = descriptor
      $0.isAccepting = isAccepting
    }
  }

  func route(_ path: String, to reply: @escaping @Sendable (Origin.Request) -> OriginReply) {
    guarded.withLock { $0.routes[path] = reply }
  }

  func routeOthers(to reply: @escaping @Sendable (Origin.Request) -> OriginReply) {
    guarded.withLock { $0.others = reply }
  }

  func received(at path: String) -> [Origin.Request] {
    guarded.withLock { $0.received[path] ?? [] }
  }

  /// Registers a connection and returns its number; `nil` if the origin has stopped.
  func opened(_ descriptor: CInt) -> Int? {
    guarded.withLock { state in
      guard !state.isStopped else { return nil }
      state.descriptors.insert(descriptor)
      state.totals.connections += 1
      state.totals.open += 1
      return state.totals.connections
    }
  }

  /// Closes the descriptor under the lock, so that `stop` never shuts down a reused descriptor.
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
      return (request, state.routes[path] ?? state.others)
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
      // Ends the accepting thread's wait; no new connection is accepted.
      shutdown(state.listener, CInt(SHUT_RDWR))
      if !state.isAccepting { close(state.listener) }
      for descriptor in state.descriptors { shutdown(descriptor, CInt(SHUT_RDWR)) }
    }
  }
}
