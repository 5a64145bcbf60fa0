// RequestContext: a request that memory has no response for, as its endpoint sees it.

import CMicrohttpd
import Model

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

  /// The image formats that the client accepts.
  var acceptedFormats: AcceptedFormats { client.loop.accept.formats(on: connection) }

  /// Returns a target's request for this client: with the formats that it accepts, and the numbers
  /// that its hints stand for.
  func adapted(_ request: ImageRequest, of target: RequestTarget) -> ImageRequest {
    guard target.isAdaptive else { return request }
    let rules = policy.rules
    let negotiated =
      target.isNegotiated ? rules.request(request, accepting: acceptedFormats) : request
    guard let use = target.hintUse else { return negotiated }
    return rules.request(negotiated, for: use.hints(on: connection))
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

  /// The services behind the admin endpoints.
  var services: AdminServices { handler.services }

  /// The parts of a request that form cache keys.
  var keyFilter: CacheKeyFilter { policy.configuration.keyFilter }

  // MARK: Handling

  /// Responds to a complete request, or suspends its connection.
  func handle() -> MHD_Result {
    if client.method == .options { return respondToOptions() }
    noteUnlistedProxy()
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
    return endpoint.access == .open || handler.hasOperators ? endpoint : nil
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
