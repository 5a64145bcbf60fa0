// RequestContext: a request that memory has no response for, as its endpoint sees it.

import CMicrohttpd
import Core

/// The context of one call of the request handler. Lives on the stack.
///
/// Finds the endpoint, checks access and method, calls its handler and carries out the result.
struct RequestContext {
  let handler: RequestHandler
  let client: Connection
  let connection: OpaquePointer
  /// The method as it was sent, for messages; use `client.method` for decisions.
  let methodName: UnsafePointer<CChar>

  // MARK: The request

  /// The query, without its `?`.
  var query: ArraySlice<UInt8> { client.target?.query ?? [] }

  /// The name of the item that the path names; empty for other endpoints.
  var name: String { client.target?.name ?? "" }

  /// The error for an item that does not exist.
  var notFound: ImageError { .notFound(path: displayable(client.target?.path ?? "")) }

  var acceptedFormats: AcceptedFormats { AcceptedFormats(on: connection) }

  /// Returns a target's request for this client.
  func adapted(_ request: ImageRequest, of target: RequestTarget) -> ImageRequest {
    client.adapted(request, of: target, on: connection)
  }

  /// Returns the value of a request field, or `nil`; of several fields the first.
  func field(_ name: StaticString) -> String? {
    RequestHandler.field(name, on: connection).map { String(cString: $0) }
  }

  /// Whether the client requests server-sent events.
  var wantsEvents: Bool {
    client.method == .get && field("Accept")?.lowercased().contains("text/event-stream") == true
  }

  // MARK: The server

  /// What the configuration decides about the request.
  var policy: RequestPolicy { client.policy }

  var services: AdminServices { handler.services }

  /// The parts of a request that form cache keys.
  var keyFilter: CacheKeyFilter { policy.configuration.keyFilter }

  // MARK: Handling

  /// Responds to a complete request, or suspends its connection.
  func handle() -> MHD_Result {
    if client.method == .options { return respondToOptions() }
    handler.unlistedProxies.note(self)
    do throws(ImageError) {
      return try perform(try admit().handle(self))
    } catch {
      return refuse(error)
    }
  }

  /// Returns the endpoint of the target, if the client may use it with this method.
  ///
  /// - Throws: `notFound`, `unauthorized`, `tooManyAttempts`, `methodNotAllowed` or
  ///   `insufficientScope`.
  func admit() throws(ImageError) -> any Endpoint {
    guard let endpoint else { throw notFound }
    let found = try identify(for: endpoint)
    guard endpoint.methods.contains(client.method) else {
      throw .methodNotAllowed(
        method: displayable(String(cString: methodName)), allowed: endpoint.allow)
    }
    try checkScope(of: found, for: endpoint)
    return endpoint
  }

  /// The target's endpoint. `nil` for an unknown path, and for admin paths without operators.
  var endpoint: (any Endpoint)? {
    guard let endpoint = client.target?.endpoint else { return nil }
    return endpoint.access == .open || handler.gate.hasOperators ? endpoint : nil
  }

  private func perform(_ disposition: Disposition) throws(ImageError) -> MHD_Result {
    switch disposition {
    case .image(let delivery): respond(with: delivery)
    case .json(let response): respond(with: response)
    case .page(let file): respond(with: file)
    case .suspend(let admission, let work, let joining):
      suspend(admission, for: work, joining: joining)
    case .events(let interval, let observe):
      try streamEvents(minimumInterval: interval, observe: observe)
    }
  }
}

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
