// StatusEndpoint: reports to load balancers whether the server serves, and nothing else.

import Model

/// `/stats` for clients of a server with a listener for operators: the status alone, from constants. The HTTP status is
/// that of `StatsEndpoint`.
struct StatusEndpoint: Endpoint {
  let path = EndpointPath.exact("/stats")
  let methods: [Method] = [.get, .head]
  let access = EndpointAccess.open
  let isRoutine = true

  func handle(_ context: RequestContext) throws(ImageError) -> Disposition {
    let readiness = context.readiness
    var response = try JSONResponse(
      ["status": readiness.name], status: readiness.status)
    response.closes = readiness.closes
    return .json(response)
  }
}
