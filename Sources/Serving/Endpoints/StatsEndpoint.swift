// StatsEndpoint: reports health and figures.

import Model

/// `/stats`: the figures of all parts. 503 while the server stops, for load balancers.
struct StatsEndpoint: Endpoint {
  let path = EndpointPath.exact("/stats")
  let methods: [Method] = [.get, .head]
  let access = EndpointAccess.open
  let isRoutine = true

  func handle(_ context: RequestContext) throws(ImageError) -> Disposition {
    let readiness = context.readiness
    let figures = try context.handler.figuresCache.bytes(isDraining: readiness.isDraining)
    var response = JSONResponse(bytes: figures, status: readiness.status)
    response.closes = readiness.closes
    return .json(response)
  }
}

/// Whether the server serves, as `/stats` says it.
struct Readiness {
  /// Whether the response closes its connection.
  let closes: Bool
  /// Whether the server stops, or is about to.
  let isDraining: Bool

  /// The HTTP status of `/stats`.
  var status: Int { isDraining ? 503 : 200 }
  /// The value of the key `status`.
  var name: String { isDraining ? "draining" : "serving" }
}

extension RequestContext {
  /// Whether the server serves. Read once for each response.
  var readiness: Readiness {
    // In this order: a response with status 200 must not close its connection.
    let closes = handler.closesConnections
    return Readiness(closes: closes, isDraining: closes || handler.announcesStop)
  }
}
