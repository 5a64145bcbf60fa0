// Endpoint: what the server does at one path, and for whom.

import Model

/// One path of the server.
///
/// `EndpointTable` lists all endpoints. 404, 401, 405 with `Allow`, answers to `OPTIONS`, CORS
/// preflights and the handling of bodies follow from what an endpoint declares. Its handler runs on
/// an event loop, once a request, for an allowed method and a client with access.
///
/// Memory hits never get here: `RequestHandler.respondFromMemory` answers them first.
protocol Endpoint: Sendable {
  /// The path.
  var path: EndpointPath { get }
  /// The allowed methods besides `OPTIONS`, which every endpoint has.
  var methods: [Method] { get }
  /// Who may use the endpoint.
  var access: EndpointAccess { get }
  /// Returns what an operator's token must allow for `method`.
  func scope(for method: Method) -> OperatorScope
  /// How its query forms an image request, parsed once per target; `nil` if it does not.
  var imageQuery: ImageQuery.Kind? { get }
  /// Whether requests come all the time: the log treats them like memory hits, and they do not
  /// count against a client's requests per second.
  var isRoutine: Bool { get }
  /// Returns what becomes of the body of a request with `method`.
  func bodyPolicy(for method: Method, in configuration: ServerConfiguration) -> BodyPolicy
  /// Handles a complete request. Must not block.
  ///
  /// - Throws: the error that the client gets.
  func handle(_ context: RequestContext) throws(ImageError) -> Disposition
}

extension Endpoint {
  func scope(for method: Method) -> OperatorScope { method.isSafe ? .read : .write }
  var imageQuery: ImageQuery.Kind? { nil }
  var isRoutine: Bool { false }
  func bodyPolicy(for method: Method, in configuration: ServerConfiguration) -> BodyPolicy {
    .discard
  }

  /// The value of `Allow`.
  var allow: String { Method.allow(methods) }
}

/// The path of an endpoint, decoded.
enum EndpointPath: Hashable, Sendable {
  /// A whole path.
  case exact(String)
  /// A path that ends with a slash, and one more segment, the name of an item.
  case item(under: String)

  /// Returns the name of the item, empty for a whole path; `nil` if `path` is another one.
  func name(in path: String) -> String? {
    switch self {
    case .exact(let own): return path == own ? "" : nil
    case .item(let parent):
      guard path.hasPrefix(parent) else { return nil }
      let name = path.dropFirst(parent.count)
      return name.isEmpty || name.contains("/") ? nil : String(name)
    }
  }
}

/// Who may use an endpoint.
enum EndpointAccess: Sendable {
  /// Every client.
  case open
  /// Clients with an operator's token of the method's scope. Without tokens there is no endpoint.
  case operators
}

/// What becomes of a request body. Only bodies of clients with access are kept.
enum BodyPolicy: Equatable, Sendable {
  /// The body is not needed.
  case discard
  /// The body is kept in an array, up to `limit` bytes.
  case memory(limit: Int)
  /// The body is kept in a memory file, up to `limit` bytes.
  case file(limit: Int)

  /// The configuration key of the limit; `nil` if it is a constant.
  var key: String? {
    if case .file = self { "download.maximum_bytes" } else { nil }
  }

  /// Maximum length of the body, in bytes; 0 if it is not needed.
  var limit: Int {
    switch self {
    case .discard: 0
    case .memory(let limit), .file(let limit): limit
    }
  }
}
