// WorkEndpoints: what operators see of running and failed work, and the actions without parameters.

import Core

/// `POST` does what the path says.
struct ActionEndpoint: Endpoint {
  let path: EndpointPath
  let methods: [Method] = [.post]
  private let summary: String
  private let scope: OperatorScope
  private let perform: @Sendable (AdminServices) throws(ImageError) -> Disposition

  /// `/admin/cache/clean` removes what expired, and what exceeds the limits.
  static let clean = ActionEndpoint(
    "/admin/cache/clean", "Remove what expired, and what exceeds the limits", .purge
  ) { services in
    .jsonLater { await services.cache.clean() }
  }
  /// `/admin/cancel` cancels all downloads and rendering (SDWebImage's cancelAll).
  static let cancel = ActionEndpoint("/admin/cancel", "Cancel all downloads and rendering") {
    services throws(ImageError) in
    .json(try JSONResponse(["cancelled": services.manager.cancelAll()]))
  }
  /// `/admin/pause` keeps queued downloads from starting.
  static let pause = ActionEndpoint("/admin/pause", "Keep queued downloads from starting") {
    services throws(ImageError) in
    services.downloads.pause()
    return .json(try JSONResponse(["paused": true]))
  }
  /// `/admin/resume` starts paused downloads.
  static let resume = ActionEndpoint("/admin/resume", "Start paused downloads") {
    services throws(ImageError) in
    services.downloads.resume()
    return .json(try JSONResponse(["paused": false]))
  }

  private init(
    _ path: String, _ summary: String, _ scope: OperatorScope = .write,
    perform: @escaping @Sendable (AdminServices) throws(ImageError) -> Disposition
  ) {
    self.path = .exact(path)
    self.summary = summary
    self.scope = scope
    self.perform = perform
  }

  func scope(for method: Method) -> OperatorScope { scope }

  func operation(for method: Method) -> Operation? { Operation(summary: summary) }

  func handle(_ context: RequestContext) throws(ImageError) -> Disposition {
    _ = try AdminQuery(context.query)
    return try perform(context.services)
  }
}

/// `/admin/failed`: GET lists the failed URLs, DELETE removes one (`url`) or all.
struct FailedURLsEndpoint: Endpoint {
  let path = EndpointPath.exact("/admin/failed")
  let methods: [Method] = [.get, .head, .delete]

  func scope(for method: Method) -> OperatorScope { method == .delete ? .purge : .read }

  func operation(for method: Method) -> Operation? {
    method == .delete
      ? Operation(summary: "Forget failed URLs", query: ["url": "One of them; without it, all"])
      : Operation(summary: "The failed URLs")
  }

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

/// `/admin/downloads`: the downloads now, or their progress as events until the client leaves.
struct DownloadsEndpoint: Endpoint {
  let path = EndpointPath.exact("/admin/downloads")

  func operation(for method: Method) -> Operation? {
    Operation(
      summary: "The downloads now, or their progress as events",
      query: ["interval": "The smallest step of progress, 0 to 1"],
      answers: ["application/json", "text/event-stream"])
  }

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
