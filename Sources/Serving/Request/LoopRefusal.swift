// LoopRefusal: requests that this server sent itself, by way of whomever.

import CMicrohttpd
import Model

extension RequestContext {
  /// The servers that the request came through (RFC 8586). A memory hit is not asked: it goes no further.
  ///
  /// - Throws: `forbiddenSource` where this server is among them, by `CDN-Loop` or `Via`, or where they are too many.
  func trail() throws(ImageError) -> ServerTrail {
    let id = handler.configuration.id
    guard !id.isEmpty else { return ServerTrail() }
    if let via = value(of: "Via"), ServerTrail.via(via, names: id) { throw refusal(via) }
    guard let value = value(of: "CDN-Loop") else { return ServerTrail() }
    let trail = ServerTrail(parsing: value)
    guard !trail.isLoop(for: id) else { throw refusal(value) }
    return trail
  }

  private func refusal(_ value: String) -> ImageError {
    .forbiddenSource(
      reason: "the request came through this server already", detail: displayable(value))
  }

  /// The value of a field; most requests have none, which costs them one look.
  private func value(of name: StaticString) -> String? {
    RequestHandler.header(name, of: connection) == nil
      ? nil : Forwarding.value(of: name.description, on: connection)
  }
}
