// ResumeDownloadsEndpoint: resumes downloads.

import Model

/// `/admin/resume`: POST lets queued downloads start again.
struct ResumeDownloadsEndpoint: Endpoint {
  let path = EndpointPath.exact("/admin/resume")
  let methods: [Method] = [.post]
  let access = EndpointAccess.operators

  func handle(_ context: RequestContext) throws(ImageError) -> Disposition {
    _ = try AdminQuery(context.query)
    context.services.downloads.resume()
    return .json(try JSONResponse(["paused": false]))
  }
}
