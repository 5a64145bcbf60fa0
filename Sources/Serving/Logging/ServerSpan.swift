// ServerSpan: a request as an exported span, by OpenTelemetry's conventions for servers.

import CMicrohttpd
import Model
import Platform
import Telemetry

/// The span of a request that has ended: from its complete header to the last byte of its response.
struct ServerSpan {
  /// The span.
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
    let sent = line?.method ?? client.method.name
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
  fileprivate var template: String {
    switch self {
    case .exact(let path): path
    case .item(let parent): parent + "{name}"
    }
  }
}
