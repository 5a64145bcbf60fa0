// Connection: one client connection and its current request.

import Glibc
import Model
import Synchronization
import Telemetry

/// The part of a connection that the monitor sees: its descriptor and its deadline.
final class ConnectionWatch: Sendable {
  /// The socket.
  let descriptor: CInt
  /// Monotonic milliseconds; `Int.max` while none of the server's own deadlines applies.
  private let storage: Atomic<Int>

  /// Creates a watch for a socket whose first request header is due by `deadline`.
  init(descriptor: CInt, deadline: Int) {
    self.descriptor = descriptor
    storage = Atomic(deadline)
  }

  /// When the connection is shut down, in monotonic milliseconds.
  var deadline: Int {
    get { storage.load(ordering: .relaxed) }
    set { storage.store(newValue, ordering: .relaxed) }
  }
}

/// The request methods that the server distinguishes.
enum Method: String {
  case get = "GET"
  case head = "HEAD"
  case post = "POST"
  case put = "PUT"
  case delete = "DELETE"
  case options = "OPTIONS"
  case other = ""

  /// The method's name, as in `Allow`.
  var name: String { rawValue }

  /// Parses the method that libmicrohttpd passes. Methods are case-sensitive.
  init(_ name: UnsafePointer<CChar>) {
    self =
      Self.isEqual(name, "GET")
      ? .get
      : Self.isEqual(name, "HEAD")
        ? .head
        : Self.isEqual(name, "POST")
          ? .post
          : Self.isEqual(name, "PUT")
            ? .put
            : Self.isEqual(name, "DELETE")
              ? .delete : Self.isEqual(name, "OPTIONS") ? .options : .other
  }

  /// Whether the method is GET or HEAD.
  var isSafe: Bool { self == .get || self == .head }

  /// Whether the method usually has a body.
  var bringsBody: Bool { self == .post || self == .put }

  /// Compares without allocating a `String` per request.
  fileprivate static func isEqual(_ name: UnsafePointer<CChar>, _ other: StaticString) -> Bool {
    // The literal ends with a NUL and has static lifetime.
    strcmp(name, UnsafeRawPointer(other.utf8Start).assumingMemoryBound(to: CChar.self)) == 0
  }
}

/// One connection, reused for each of its requests so that a request does not allocate. Belongs to
/// the thread of its event loop.
final class Connection {
  /// The progress of the current request.
  enum Stage {
    /// The request line was parsed; the header is incomplete.
    case received
    /// The header is complete; a body may follow.
    case headed
    /// Suspended, or resumed and not yet handled.
    case suspended
    /// A response was queued.
    case answered
  }

  /// The state of the event loop that the connection belongs to.
  let worker: EventLoopState
  /// The descriptor and the deadline.
  let watch: ConnectionWatch
  /// Whoever connected; `nil` where that has no IP address.
  let peer: IPAddress?
  /// How far the current request is.
  var stage = Stage.received
  /// The parsed request target.
  var target: RequestTarget?
  /// What the request is called in its answer and in the log.
  var requestID = RequestID()
  /// Monotonic nanoseconds at which the header was whole.
  var startedAt = 0
  /// The part of the request body that was received.
  var upload = RequestBody()
  /// Body bytes of the response; 0 for HEAD and 304.
  var bodyBytes = 0
  /// Whether the request is complete and counted in `EventLoopState.active`.
  var isActive = false
  /// The request method.
  var method = Method.other
  /// Whether the request uses HTTP/1.1. Such clients detect a truncated chunked body.
  var isHTTP11 = false
  /// The suspended request.
  var exchange: SuspendedRequest?
  /// The framing state of the received bytes.
  var framing = RequestFraming()
  /// The number of requests that were answered or aborted.
  var endedRequests = 0
  /// The framing fault after the last complete request.
  var fault: FramingFault?
  /// The request line of what is refused for it, as far as it came.
  var refusedLine: [UInt8] = []
  /// The beginning of a request line that came in pieces.
  var lineBeginning: [UInt8] = []
  /// Whether that was answered: whatever else comes is dropped.
  var isRefused = false
  /// The response whose body arrives while it is sent.
  var streaming: Streaming?

  /// A connection without a request.
  init(worker: EventLoopState, watch: ConnectionWatch, peer: IPAddress?) {
    (self.worker, self.watch, self.peer) = (worker, watch, peer)
  }

  /// Begins a request whose request line was parsed.
  func begin(_ target: consuming RequestTarget) {
    self.target = target
    stage = .received
    bodyBytes = 0
  }

  /// Whether the version that libmicrohttpd passes is HTTP/1.1.
  static func isHTTP11(_ version: UnsafePointer<CChar>) -> Bool {
    Method.isEqual(version, "HTTP/1.1")
  }

  /// Whole microseconds since the header was complete.
  var elapsedMicroseconds: Int { (Clock.nanoseconds() - startedAt) / 1_000 }

  /// Returns how many bytes of a body are sent: 0 for HEAD and for status 304.
  func bodyBytes(status: Int, of bytes: Int) -> Int { status == 304 || method == .head ? 0 : bytes }
}
