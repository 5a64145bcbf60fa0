// Endpoint: what the server does at one path, for whom, and what becomes of a request there.

import Core

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
  /// The allowed methods besides `OPTIONS`, which every endpoint has; by default GET and HEAD.
  var methods: [Method] { get }
  /// Who may use the endpoint; by default operators.
  var access: EndpointAccess { get }
  /// Returns what an operator's token must allow for `method`.
  func scope(for method: Method) -> OperatorScope
  /// Returns what `/openapi.json` says of `method`; `nil`: it is no part of the interface.
  func operation(for method: Method) -> Operation?
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
  var methods: [Method] { [.get, .head] }
  var access: EndpointAccess { .operators }
  func scope(for method: Method) -> OperatorScope { method.isSafe ? .read : .write }
  var imageQuery: ImageQuery.Kind? { nil }
  var isRoutine: Bool { false }
  func bodyPolicy(for method: Method, in configuration: ServerConfiguration) -> BodyPolicy {
    .discard
  }

  var allow: String { Method.allow(methods) }
}

/// What the description of the interface says of a method of an endpoint.
struct Operation {
  /// What it does, in one line.
  let summary: String
  /// Whether it has the parameters of `/image`.
  var takesImageQuery = false
  /// The parameters of its query besides, with their meanings.
  var query: KeyValuePairs<String, String> = [:]
  /// The media type of the body that it takes.
  var body: String?
  /// The statuses of success.
  var statuses = [200]
  /// The media types of a successful answer.
  var answers = ["application/json"]
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

/// Asynchronous work that decides how a request ends.
typealias RequestWork = @Sendable () async throws(ImageError) -> Outcome

/// Joins the work of another request, whose outcome is this one's, too. Calls the closure once, on
/// any thread, perhaps before it returns. Returns a function that leaves; `nil` without such work.
typealias JoinedWork =
  @Sendable (LoadClient, @escaping @Sendable (Outcome) -> Void) -> (@Sendable () -> Void)?

/// What an endpoint's handler returns. `RequestContext` carries it out.
enum Disposition {
  /// Sends an image that was available without waiting.
  case image(ImageDelivery)
  /// Sends JSON.
  case json(JSONResponse)
  /// Sends a file of the page.
  case page(PageFile)
  /// Suspends the connection until the work has ended: that of other requests if there is any to
  /// join, or else the request's own.
  case suspend(Admission, RequestWork, joining: JoinedWork? = nil)
  /// Streams the events that `observe` reports, until the client disconnects. `interval` is the
  /// smallest reported step of progress, as a fraction from 0 to 1.
  case events(interval: Double, observe: (ProgressEvents) -> Observation?)

  /// Suspends the connection and sends JSON that is gathered and encoded outside the event loop,
  /// because it may be long. Operators are admitted during overload.
  static func jsonLater(
    _ content: @escaping @Sendable () async throws(ImageError) -> some Encodable & SendableMetatype
  ) -> Disposition {
    .suspend(.always) { () async throws(ImageError) in
      .json(try JSONResponse(try await content()))
    }
  }
}

/// Whether a suspended request counts against the limit of active requests.
enum Admission: Sendable {
  /// The request is refused during overload.
  case limited
  /// The request is admitted during overload.
  case always
}

/// A request method (RFC 9110, section 9).
enum Method: String {
  case get = "GET"
  case head = "HEAD"
  case post = "POST"
  case put = "PUT"
  case delete = "DELETE"
  case options = "OPTIONS"
  case other = ""

  /// Parses the method that libmicrohttpd passes. Methods are case-sensitive.
  /// A text this short does not allocate.
  init(_ name: UnsafePointer<CChar>) { self = Method(rawValue: String(cString: name)) ?? .other }

  var isSafe: Bool { self == .get || self == .head }

  /// Whether requests with the method usually have a body.
  var hasBody: Bool { self == .post || self == .put }

  /// Returns the value of `Allow` (RFC 9110, section 10.2.1): the methods and `OPTIONS`.
  static func allow(_ methods: [Method]) -> String {
    (methods + [.options]).map(\.rawValue).joined(separator: ", ")
  }
}
