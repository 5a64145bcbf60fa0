// RequestContext+Loops: reads what servers in front tell: their names, and the trace.

import CMicrohttpd
import Model

extension RequestContext {
  /// Returns the servers that the request came through (RFC 8586). Memory hits are not checked,
  /// because they are not forwarded.
  ///
  /// - Throws: `forbiddenSource` if `CDN-Loop` or `Via` names this server, or too many servers.
  func trail() throws(ImageError) -> ServerTrail {
    let id = policy.configuration.id
    guard !id.isEmpty else { return ServerTrail() }
    if let via = value(of: "Via"), ServerTrail.via(via, names: id) { throw refusal(via) }
    guard let value = value(of: "CDN-Loop") else { return ServerTrail() }
    let trail = ServerTrail(parsing: value)
    guard !trail.isLoop(for: id) else { throw refusal(value) }
    return trail
  }

  /// The trace for the load (W3C Trace Context), if origins may be told or the request is recorded.
  var trace: TraceContext? {
    policy.configuration.propagatesTraces || client.trace.isRecorded
      ? handler.trace(of: client, on: connection) : nil
  }

  private func refusal(_ value: String) -> ImageError {
    .forbiddenSource(
      reason: "the request already passed through this server", detail: displayable(value))
  }

  /// Returns the value of all lines of a field. Most requests have none, which costs one look-up.
  private func value(of name: StaticString) -> String? {
    RequestHandler.field(name, on: connection) == nil
      ? nil : Forwarding.value(of: name.description, on: connection)
  }
}
