// FailedURLsEndpoint: lists and removes negatively cached URLs.

import Core

/// `/admin/failed`: GET lists the failed URLs, DELETE removes one (`url`) or all.
struct FailedURLsEndpoint: Endpoint {
  let path = EndpointPath.exact("/admin/failed")
  let methods: [Method] = [.get, .head, .delete]

  func scope(for method: Method) -> OperatorScope { method == .delete ? .purge : .read }

  func handle(_ context: RequestContext) throws(ImageError) -> Disposition {
    let manager = context.services.manager
    guard context.client.method == .delete else {
      _ = try AdminQuery(context.query)
      return .jsonLater { ["failed": manager.failedURLs()] }
    }
    let query = try AdminQuery(context.query, allowed: ["url"])
    let filter = context.keyFilter
    let url = try query["url"].map { text throws(ImageError) in
      filter.keyURL(of: try SourceURL(parsing: text))
    }
    return .jsonLater { ["removed": manager.removeFailedURLs(url)] }
  }
}
