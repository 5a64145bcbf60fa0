// Connection: one client's connection and the request that is on it.

import Glibc
import Model
import Synchronization
import Telemetry

/// What the watcher may know of a connection: its descriptor and when it is to be shut down.
final class ConnectionWatch: Sendable {
  /// The socket.
  let descriptor: CInt
  /// Monotonic milliseconds; `Int.max` while none of the server's own deadlines applies.
  private let storage: Atomic<Int>

  /// Watches a socket that is to have sent a whole header by `deadline`.
  init(descriptor: CInt, deadline: Int) {
    self.descriptor = descriptor
    storage = Atomic(deadline)
  }

  /// When the connection is to be shut down.
  var deadline: Int {
    get { storage.load(ordering: .relaxed) }
    set { storage.store(newValue, ordering: .relaxed) }
  }
}

/// What a request does, as far as it matters here.
enum Method: String {
  case get = "GET"
  case head = "HEAD"
  case post = "POST"
  case put = "PUT"
  case delete = "DELETE"
  case options = "OPTIONS"
  case other = ""

  /// Its name, as in `Allow`.
  var name: String { rawValue }

  /// The method libmicrohttpd shows, which is case-sensitive.
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

  /// Whether it only reads.
  var isSafe: Bool { self == .get || self == .head }

  /// Whether it usually has a body.
  var bringsBody: Bool { self == .post || self == .put }

  /// Compares without a `String`, which would be made for each request.
  fileprivate static func isEqual(_ name: UnsafePointer<CChar>, _ other: StaticString) -> Bool {
    // The literal's bytes end with a NUL and are never released.
    strcmp(name, UnsafeRawPointer(other.utf8Start).assumingMemoryBound(to: CChar.self)) == 0
  }
}

/// One connection, reused for each request on it, so that a request allocates nothing. Belongs to its worker's thread.
final class Connection {
  /// How far the current request is.
  enum Stage {
    /// Its request line was read; the header is not whole.
    case received
    /// The header is whole; a body may follow.
    case headed
    /// Suspended, or resumed and not looked at yet.
    case suspended
    /// An answer was queued.
    case answered
  }

  /// Whose thread it belongs to.
  let worker: EventLoopState
  /// Its deadlines.
  let watch: ConnectionWatch
  /// Whoever connected; `nil` where that has no IP address.
  let peer: IPAddress?
  /// How far the current request is.
  var stage = Stage.received
  /// What is asked for.
  var target: RequestTarget?
  /// What the request is called in its answer and in the log.
  var requestID = RequestID()
  /// Monotonic nanoseconds at which the header was whole.
  var startedAt = 0
  /// The request's body, as far as it was read.
  var upload = RequestBody()
  /// Body bytes of the answer, 0 for HEAD and 304.
  var bodyBytes = 0
  /// Whether the request is whole and counts in `EventLoopState.active`.
  var isActive = false
  /// What is done with it.
  var method = Method.other
  /// Whether it came with HTTP/1.1: such a client sees where a body in chunks ends.
  var isHTTP11 = false
  /// The suspended request.
  var exchange: SuspendedRequest?
  /// What of its bytes is judged.
  var framing = RequestFraming()
  /// How many requests are answered, or never will be.
  var endedRequests = 0
  /// What is wrong with what comes behind the requests that are whole.
  var fault: FramingFault?
  /// The request line of what is refused for it, as far as it came.
  var refusedLine: [UInt8] = []
  /// The beginning of a request line that came in pieces.
  var lineBeginning: [UInt8] = []
  /// Whether that was answered: whatever else comes is dropped.
  var isRefused = false
  /// The answer under way, where its body comes while it is sent.
  var streaming: Streaming?

  /// A connection without a request.
  init(worker: EventLoopState, watch: ConnectionWatch, peer: IPAddress?) {
    (self.worker, self.watch, self.peer) = (worker, watch, peer)
  }

  /// A new request line was read.
  func begin(_ target: consuming RequestTarget) {
    self.target = target
    stage = .received
    bodyBytes = 0
  }

  /// Whether the version libmicrohttpd shows is HTTP/1.1.
  static func isHTTP11(_ version: UnsafePointer<CChar>) -> Bool {
    Method.isEqual(version, "HTTP/1.1")
  }

  /// Whole microseconds since the header was whole.
  var elapsedMicroseconds: Int { (Clock.nanoseconds() - startedAt) / 1_000 }

  /// How many bytes of a body are sent: none to HEAD, nor with 304.
  func bodyBytes(status: Int, of bytes: Int) -> Int { status == 304 || method == .head ? 0 : bytes }
}
