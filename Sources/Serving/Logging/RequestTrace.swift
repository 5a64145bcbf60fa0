// RequestTrace: the trace of a connection's current request, and its exported span.

import CMicrohttpd
import Core
import Glibc

/// The trace of a request. The log, origins and the exported span name the same ids.
struct RequestTrace {
  private(set) var isRead = false
  /// The trace; `nil` if the request belongs to none.
  private(set) var context: TraceContext?
  /// Whether a span of the request is exported.
  private(set) var isRecorded = false
  /// What the log says of the request.
  var line: RequestLine?
  var timings: Timings?

  /// The id of a recorded trace, for exemplars.
  var recordedID: String? { isRecorded ? context?.traceID : nil }
}

extension RequestHandler {
  /// Decides at the complete header whether a request is recorded. If not, allocates nothing.
  ///
  /// A trusted proxy decides with the sampled flag of its one `traceparent`. Other clients' flags
  /// could fill the collector. Of other requests a share is picked, never probes or scrapes.
  func beginTrace(of client: Connection, on connection: OpaquePointer) {
    guard client.policy.exportsSpans else { return }
    var decision: Bool?
    if Self.field("traceparent", on: connection) != nil,
      client.policy.trustedProxies.trusts(client.peer?.unmapped),
      let field = Self.onlyParent(on: connection)
    {
      decision = TraceContext.isSampled(
        parent: UnsafeRawBufferPointer(start: field, count: strlen(field)))
    }
    let isRecorded =
      decision
      ?? (client.loop.sampler.picks(below: client.policy.sampleThreshold)
        && client.target?.endpoint?.isRoutine != true)
    guard isRecorded else { return }
    let told = Self.traceContext(on: connection)?.sampled(true)
    client.trace = RequestTrace(
      isRead: true, context: told ?? TraceContext(), isRecorded: true)
  }

  /// Returns the trace of a request, read at the first call. `nil` without a valid `traceparent`,
  /// or with several, unless the request is recorded.
  func trace(of client: Connection, on connection: OpaquePointer?) -> TraceContext? {
    if !client.trace.isRead, let connection {
      let told = Self.traceContext(on: connection)
      // With an exporter, origins are told this server's decision.
      client.trace = RequestTrace(
        isRead: true, context: client.policy.exportsSpans ? told?.sampled(false) : told)
    }
    return client.trace.context
  }

  private static func traceContext(on connection: OpaquePointer) -> TraceContext? {
    guard field("traceparent", on: connection) != nil, let parent = onlyParent(on: connection)
    else { return nil }
    return TraceContext(
      parent: Array(UnsafeRawBufferPointer(start: parent, count: strlen(parent))),
      state: Forwarding.value(of: "tracestate", on: connection) ?? "")
  }

  private struct Parents {
    var count = 0
    var first: UnsafePointer<CChar>?
  }

  /// Returns the `traceparent` field if there is exactly one (W3C Trace Context, section 3.2).
  /// Allocates nothing. libmicrohttpd owns the text until the request ends.
  private static func onlyParent(on connection: OpaquePointer) -> UnsafePointer<CChar>? {
    var found = Parents()
    withUnsafeMutablePointer(to: &found) { found in
      // Calls back before it returns, and retains nothing.
      _ = MHD_get_connection_values(
        connection, .HEADER_KIND,
        { context, _, name, value in
          guard let context, let name, let value, strcasecmp(name, "traceparent") == 0 else {
            return .YES
          }
          let found = context.assumingMemoryBound(to: Parents.self)
          found.pointee.count += 1
          found.pointee.first = value
          return .YES
        }, found)
    }
    return found.count == 1 ? found.first : nil
  }

  /// Exports the span of a recorded request that has ended, and forgets its trace.
  func endTrace(of client: Connection, on connection: OpaquePointer?, isWhole: Bool) {
    if client.trace.isRecorded, let context = client.trace.context {
      spans?.add(
        ServerSpan(client, context: context, on: connection, isWhole: isWhole).span)
    }
    client.trace = RequestTrace()
  }
}

/// Picks a share of requests at random. Belongs to one event loop, because the system's random
/// numbers cost a system call each.
///
/// Not by the trace id: a client chooses that, and so could choose to be recorded.
struct TraceSampler {
  private var state = UInt64.random(in: 0...(.max))

  /// Returns what `picks` compares with, for a share of 0–1.
  static func threshold(of share: Double) -> UInt64 {
    guard share < 1 else { return .max }
    return UInt64(max(share, 0) * 18_446_744_073_709_551_616)
  }

  /// Returns whether the next request is recorded.
  mutating func picks(below threshold: UInt64) -> Bool {
    // SplitMix64 (Steele, Lea and Flood, 2014).
    state &+= 0x9e37_79b9_7f4a_7c15
    var value = state
    value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
    value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
    return threshold == .max || (value ^ (value >> 31)) < threshold
  }
}

/// The span of a request that has ended: from its complete header to the last byte of its response.
struct ServerSpan {
  let span: Span

  /// The methods that the conventions know (RFC 9110, RFC 5789).
  private static let methods: Set<String> = [
    "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH",
  ]
  /// The value for all other methods, which bounds the number of span names.
  private static let otherMethod = "_OTHER"

  /// Describes the request of a connection.
  init(
    _ client: Connection, context: TraceContext, on connection: OpaquePointer?, isWhole: Bool
  ) {
    let line = client.trace.line
    let sent = line?.method ?? client.method.rawValue
    let method = Self.methods.contains(sent) ? sent : Self.otherMethod
    let route = client.target?.endpoint?.path.template
    var attributes = [
      SpanAttribute("http.request.method", method),
      SpanAttribute("url.scheme", "http"),
      SpanAttribute("url.path", SecretMask.masked(client.target?.path ?? "")),
      SpanAttribute("network.protocol.version", client.isHTTP11 ? "1.1" : "1.0"),
      SpanAttribute("pictor.request_id", client.requestID.description),
    ]
    if let route { attributes.append(SpanAttribute("http.route", route)) }
    if let host = connection.flatMap({ RequestHandler.field("Host", on: $0) }) {
      attributes += Self.address(String(cString: host))
    }
    // A client that left got no status; 499 is the log's own.
    let status = line.map(\.status).flatMap { $0 == ImageError.cancelled.status ? nil : $0 }
    if let line, let status {
      attributes.append(SpanAttribute("http.response.status_code", status))
      attributes.append(SpanAttribute("http.response.body.size", line.bytes))
    }
    if let cacheStatus = line?.cacheStatus {
      attributes.append(SpanAttribute("pictor.cache_status", cacheStatus))
    }
    if let error = line?.error { attributes.append(SpanAttribute("pictor.error", error.code)) }
    if let fallback = line?.fallback {
      attributes.append(SpanAttribute("pictor.fallback", fallback))
    }
    if let timings = client.trace.timings { attributes += SpanAttribute.stages(timings) }
    let isFault = (status ?? 0) >= 500
    if isFault || status == nil || !isWhole {
      let code = line?.error?.code ?? (isFault ? "\(status ?? 500)" : "incomplete")
      attributes.append(SpanAttribute("error.type", code))
    }
    let end = WallClock.nanoseconds
    span = Span(
      context, .server, name: route.map { "\(Self.nameOf(method)) \($0)" } ?? Self.nameOf(method),
      start: end - (Clock.nanoseconds() - client.startedAt), end: end, isError: isFault,
      attributes: attributes)
  }

  /// The conventions say `HTTP` for a method that they do not know.
  private static func nameOf(_ method: String) -> String {
    method == otherMethod ? "HTTP" : method
  }

  /// Returns the address and the port of a `Host` field; nothing for one that is no host.
  static func address(_ field: String) -> [SpanAttribute] {
    let bytes = field.utf8
    guard !bytes.isEmpty, bytes.count <= 255,
      bytes.allSatisfy({ byte in
        switch byte {
        case 0x30...0x3a, 0x41...0x5a, 0x61...0x7a: true
        default: "-._[]".utf8.contains(byte)
        }
      })
    else { return [] }
    let end = field.lastIndex(of: "]").map { field.index(after: $0) } ?? field.startIndex
    guard let colon = field[end...].firstIndex(of: ":") else {
      return [SpanAttribute("server.address", field)]
    }
    let host = SpanAttribute("server.address", String(field[..<colon]))
    guard let port = Int(field[field.index(after: colon)...]), (1...65_535).contains(port),
      colon != field.startIndex
    else { return [] }
    return [host, SpanAttribute("server.port", port)]
  }
}

extension EndpointPath {
  /// The path with a placeholder for the name of an item.
  var template: String {
    switch self {
    case .exact(let path): path
    case .item(let parent): parent + "{name}"
    }
  }
}
