// EndpointTable: the list of all endpoints, and whom the listeners that have them serve.

import Core

/// The endpoints of a listener. A new one is a file in `Endpoints/` and a line here.
struct EndpointTable: Sendable {
  /// The endpoints of clients.
  private static let forClients: [any Endpoint] = [
    ImageEndpoint("/image", .image),
    ImageEndpoint("/info", .info),
  ]

  /// The endpoints of every listener.
  private static let forOrchestrators: [any Endpoint] = [
    HealthEndpoint("/livez", .liveness),
    HealthEndpoint("/readyz", .readiness),
    OpenAPIEndpoint(),
  ]

  /// What browsers and crawlers ask of every server.
  private static let forBrowsers: [any Endpoint] = [
    UnaskedFileEndpoint.robots, UnaskedFileEndpoint.icon,
  ]

  /// The page for people, on every listener.
  private static let forPeople: [any Endpoint] = [
    PageEndpoint(path: .exact("/")), PageEndpoint(path: .item(under: "/page/")),
  ]

  /// The endpoints that move to the operators' listener, if there is one.
  private static let forOperators: [any Endpoint] = [
    StatsEndpoint(),
    MetricsEndpoint(),
    AdminCacheEndpoint(),
    ClearCacheEndpoint(),
    ActionEndpoint.clean,
    ExplainEndpoint(),
    DoctorEndpoint(),
    FailedURLsEndpoint(),
    ActionEndpoint.cancel,
    DownloadsEndpoint(),
    ActionEndpoint.pause,
    ActionEndpoint.resume,
    PrefetchesEndpoint(),
    PrefetchEndpoint(),
  ]

  /// The endpoints of the only listener.
  static let everyone = EndpointTable(
    endpoints: forClients + forOrchestrators + forBrowsers + forPeople + forOperators)
  /// The endpoints of clients, beside a listener for operators.
  static let clients = EndpointTable(
    endpoints: forClients + forOrchestrators + forBrowsers + forPeople
      // In place of the figures.
      + [HealthEndpoint("/stats", .readiness)])
  /// The endpoints of the operators' listener.
  static let operators = EndpointTable(
    endpoints: forOrchestrators + forBrowsers + forPeople + forOperators)

  /// The value of `Allow` for a path without an endpoint.
  static let allowAnywhere = Method.allow([.get, .head])

  /// The endpoints; no path belongs to two of them.
  let endpoints: [any Endpoint]
  /// The doors, which have the addresses that no endpoint has.
  private(set) var doors: [DoorPlace] = [] {
    didSet { hosts = Set(doors.map(\.host)).subtracting([""]).sorted() }
  }
  /// The hosts that only some doors have.
  private(set) var hosts: [String] = []

  var withoutPage: EndpointTable {
    let page = Set(Self.forPeople.map(\.path))
    return EndpointTable(endpoints: endpoints.filter { !page.contains($0.path) })
  }

  /// The same endpoints, of which those for images take sources in bodies.
  var takingBodies: EndpointTable {
    EndpointTable(
      endpoints: endpoints.map { endpoint in
        guard var image = endpoint as? ImageEndpoint else { return endpoint }
        image.methods.append(.post)
        return image
      })
  }

  /// The same endpoints with doors beside them.
  func with(_ doors: [DoorPlace]) -> EndpointTable {
    var table = self
    table.doors = doors
    return table
  }

  /// Returns the door of an address that no endpoint has, and the address there. The page yields to
  /// a door whose addresses are at `/` too, and have a query.
  func door(
    path: ArraySlice<UInt8>, query: ArraySlice<UInt8>, host: String,
    besides endpoint: (any Endpoint)?
  ) -> (door: any Door, address: DoorAddress)? {
    guard endpoint == nil || endpoint?.path == .exact("/") && !query.isEmpty else { return nil }
    for place in doors {
      if let address = place.address(path: path, query: query, host: host) {
        return (place.door, address)
      }
    }
    return nil
  }

  /// Returns the endpoint of a decoded path, and the name of the item in it (see `EndpointPath`).
  func find(_ path: String) -> (endpoint: any Endpoint, name: String)? {
    for endpoint in endpoints {
      if let name = endpoint.path.name(in: path) { return (endpoint, name) }
    }
    return nil
  }
}

/// Whom a listener serves. It decides which endpoints the listener has, and names its threads.
enum Audience: Sendable {
  /// Clients and operators, on the only listener.
  case everyone
  /// Clients, beside a listener for operators.
  case clients
  /// Operators, on a listener of their own.
  case operators

  var endpoints: EndpointTable {
    switch self {
    case .everyone: .everyone
    case .clients: .clients
    case .operators: .operators
    }
  }

  /// Returns the name of a thread, at most 15 bytes.
  func threadName(_ role: String) -> String { (self == .operators ? "op-" : "pictor-") + role }
}
