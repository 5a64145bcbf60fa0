// CancelEndpoint: cancels all work.

import Model

/// `/admin/cancel`: POST cancels all downloads and rendering (SDWebImage's cancelAll).
struct CancelEndpoint: Endpoint {
  let path = EndpointPath.exact("/admin/cancel")
  let methods: [Method] = [.post]
  let access = EndpointAccess.operators

  func handle(_ context: RequestContext) throws(ImageError) -> Disposition {
    _ = try AdminQuery(context.query)
    return .json(try JSONResponse(["cancelled": context.services.manager.cancelAll()]))
  }
}
