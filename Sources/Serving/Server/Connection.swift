// Connection: one client connection and its current request.

import Core
import Glibc
import Synchronization

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
    case answered
  }

  /// The state of the event loop that the connection belongs to.
  let loop: EventLoopState
  /// What the configuration decided when the request line arrived.
  var policy: RequestPolicy
  /// The descriptor and the deadline.
  let watch: ConnectionWatch
  /// The address of the client or the last proxy; `nil`: a unix socket. A PROXY header changes it.
  var peer: IPAddress?
  /// The received part of the PROXY header; `nil` if the connection has none, or it was read.
  var proxyHeader: [UInt8]?
  /// The progress of the current request.
  var stage = Stage.received
  /// The request target, parsed at the first use of this property: a hit of a known target has
  /// none.
  var target: RequestTarget? {
    get {
      if isUnparsed {
        isUnparsed = false
        parsedTarget = RequestTarget(
          raw: rawTarget, rules: policy.rules, endpoints: policy.endpoints,
          host: host > 0 ? policy.endpoints.hosts[host - 1] : "")
      }
      return parsedTarget
    }
    set { parsedTarget = newValue }
  }
  /// The number of the host that the request names among those of doors, from 1; 0: none of them.
  var host = 0
  /// Whether the target was received and not parsed.
  private(set) var isUnparsed = false
  private var parsedTarget: RequestTarget?
  /// What a hit needs of a target that is not parsed; `nil` if it is parsed, or not known.
  var known: KnownTarget?
  /// Where `KnownTargets` may keep the target after a hit; `nil` if it need not.
  var unknownDigest: KnownTargets.Digest?
  private(set) var rawTarget: [UInt8] = []
  /// The request's id in its response and in the log.
  var requestID = RequestID()
  var trace = RequestTrace()
  /// Monotonic nanoseconds at which the header was complete.
  var startedAt = 0
  /// The part of the request body that was received.
  var body = RequestBody()
  /// Body bytes of the response; 0 for HEAD and 304.
  var bodyBytes = 0
  /// Whether the request is complete and counted in `EventLoopState.active`.
  var isActive = false
  var method = Method.other
  /// Whether the request uses HTTP/1.1. Such clients detect a truncated chunked body.
  var isHTTP11 = false
  /// What the request's token proves; `nil` until an endpoint for operators asks.
  var verdict: OperatorVerdict?
  var suspendedRequest: SuspendedRequest?
  /// Whether the monitor's epoll set has the socket: since a request was suspended, until a hit.
  var isMonitored = false
  /// The framing state of the received bytes.
  var framing = RequestFraming()
  /// The number of requests that were answered or aborted.
  var endedRequests = 0
  /// The framing fault after the last complete request.
  var fault: ImageError?
  /// The received part of the request line that is refused for the fault.
  var refusedLine: [UInt8] = []
  /// The beginning of a request line that arrived in several pieces.
  var lineBeginning: [UInt8] = []
  /// Whether the fault was answered; further input is dropped.
  var isRefused = false
  /// The response whose body arrives while it is sent.
  var streaming: Streaming?

  init(
    loop: EventLoopState, watch: ConnectionWatch, peer: IPAddress?, policy: RequestPolicy
  ) {
    self.loop = loop
    self.policy = policy
    self.watch = watch
    self.peer = peer
  }

  /// Begins a request whose target is parsed later, if at all. `raw` is copied, because
  /// libmicrohttpd decodes it in place.
  func begin(_ raw: UnsafeRawBufferPointer) {
    // Before the buffer that it shares is reused.
    parsedTarget = nil
    rawTarget.removeAll(keepingCapacity: true)
    rawTarget.append(contentsOf: raw)
    isUnparsed = true
    host = 0
    known = nil
    unknownDigest = nil
    stage = .received
    bodyBytes = 0
  }

  /// Returns a target's request for this client: with the formats that it accepts, and the numbers
  /// that its hints stand for.
  func adapted(
    _ request: ImageRequest, of target: RequestTarget, on connection: OpaquePointer
  ) -> ImageRequest {
    guard target.isAdaptive else { return request }
    let rules = policy.rules
    let negotiated =
      target.isNegotiated
      ? rules.request(request, accepting: AcceptedFormats(on: connection)) : request
    guard let use = target.hintUse else { return negotiated }
    return rules.request(negotiated, for: use.hints(on: connection))
  }

  /// Whether no request is read or answered: the header of the next one is awaited or incomplete.
  var isWaiting: Bool { isAtLastRequest && framing.isBeforeBody }

  /// Whether all requests that were received completely are answered.
  var isAtLastRequest: Bool { endedRequests >= framing.wholeRequests }

  /// Whether the version that libmicrohttpd passes is HTTP/1.1.
  static func isHTTP11(_ version: UnsafePointer<CChar>) -> Bool {
    strcmp(version, "HTTP/1.1") == 0
  }

  /// Whole microseconds since the header was complete.
  var elapsedMicroseconds: Int { (Clock.nanoseconds() - startedAt) / 1_000 }

  /// Returns how many bytes of a body are sent: 0 for HEAD and for status 304.
  func bodyBytes(status: Int, of bytes: Int) -> Int { status == 304 || method == .head ? 0 : bytes }
}
