// DownloadsEndpoint: lists downloads, and streams their progress.

import Core

/// `/admin/downloads`: the downloads now, or their progress as events until the client leaves.
struct DownloadsEndpoint: Endpoint {
  let path = EndpointPath.exact("/admin/downloads")

  func handle(_ context: RequestContext) throws(ImageError) -> Disposition {
    let query = try AdminQuery(context.query, allowed: ["interval"])
    let interval = try query.fraction("interval") ?? 0
    let downloads = context.services.downloads
    guard context.wantsEvents else {
      return .jsonLater { ["downloads": downloads.downloads()] }
    }
    return .events(interval: interval) { events in
      let observation = downloads.observeDownloads { events.report($0) }
      events.list(downloads.downloads())
      return observation
    }
  }
}
