// StatsEndpoint: reports health and figures.

import Model

/// `/stats`: the figures of all parts. The status is 503 while the server stops, so that load balancers notice.
struct StatsEndpoint: Endpoint {
  let path = EndpointPath.exact("/stats")
  let methods: [Method] = [.get, .head]
  let access = EndpointAccess.open
  let isRoutine = true

  func handle(_ context: RequestContext) throws(ImageError) -> Disposition {
    let handler = context.handler
    // Read once and in this order: a response with status 200 must not close its connection.
    let closes = handler.isDraining
    let isDraining = closes || handler.announcesStop
    let figures = handler.figures.figures(
      limit: handler.configuration.maximumActiveRequests, connections: handler.connectionCount)
    var response = try JSONResponse(
      handler.stats(figures, isDraining), status: isDraining ? 503 : 200)
    response.closes = closes
    return .json(response)
  }
}
