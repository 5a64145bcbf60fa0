// PauseDownloadsEndpoint: pauses downloads.

import Model

/// `/admin/pause`: POST keeps queued downloads from starting.
struct PauseDownloadsEndpoint: Endpoint {
  let path = EndpointPath.exact("/admin/pause")
  let methods: [Method] = [.post]
  let access = EndpointAccess.operators

  func handle(_ context: RequestContext) throws(ImageError) -> Disposition {
    _ = try AdminQuery(context.query)
    context.services.downloads.pause()
    return .json(try JSONResponse(["paused": true]))
  }
}
