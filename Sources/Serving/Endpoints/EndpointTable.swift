// EndpointTable: the list of all endpoints.

/// All endpoints. A new one is a file in `Endpoints/` and a line here.
enum EndpointTable {
  /// The endpoints; no path belongs to two of them.
  static let endpoints: [any Endpoint] = [
    ImageEndpoint(),
    InfoEndpoint(),
    StatsEndpoint(),
    AdminCacheEndpoint(),
    ClearCacheEndpoint(),
    CleanCacheEndpoint(),
    FailedURLsEndpoint(),
    CancelEndpoint(),
    DownloadsEndpoint(),
    PauseDownloadsEndpoint(),
    ResumeDownloadsEndpoint(),
    PrefetchesEndpoint(),
    PrefetchEndpoint(),
  ]

  /// The value of `Allow` for a path without an endpoint.
  static let allowAnywhere = Method.allow([.get, .head])

  /// Returns the endpoint of a decoded path, and the name of the item in it (see `EndpointPath`).
  static func find(_ path: String) -> (endpoint: any Endpoint, name: String)? {
    for endpoint in endpoints {
      if let name = endpoint.path.name(in: path) { return (endpoint, name) }
    }
    return nil
  }
}
