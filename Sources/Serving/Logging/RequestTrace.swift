// RequestTrace: the trace of a connection's current request, and whether it is recorded.

import CMicrohttpd
import Glibc
import Model
import Telemetry

/// The trace of a request. The log, origins and the exported span name the same ids.
struct RequestTrace {
  /// Whether the fields were read.
  private(set) var isRead = false
  /// The trace; `nil` if the request belongs to none.
  private(set) var context: TraceContext?
  /// Whether a span of the request is exported.
  private(set) var isRecorded = false
  /// What the log says of the request.
  var line: RequestLine?
  /// The durations of its stages.
  var timings: Timings?

  /// Creates a trace that is not read.
  init() {}

  /// Creates a trace that was read.
  init(_ context: TraceContext?, isRecorded: Bool) {
    self.context = context
    self.isRecorded = isRecorded
    isRead = true
  }
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
    client.trace = RequestTrace(told ?? TraceContext(), isRecorded: true)
  }

  /// Returns the trace of a request, read at the first call. `nil` without a valid `traceparent`,
  /// or with several, unless the request is recorded.
  func trace(of client: Connection, on connection: OpaquePointer?) -> TraceContext? {
    if !client.trace.isRead, let connection {
      let told = Self.traceContext(on: connection)
      // With an exporter, origins are told this server's decision.
      client.trace = RequestTrace(
        client.policy.exportsSpans ? told?.sampled(false) : told, isRecorded: false)
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
