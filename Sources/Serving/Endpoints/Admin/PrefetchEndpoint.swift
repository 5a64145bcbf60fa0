// PrefetchEndpoint: reports, watches and cancels one prefetch.

import Model

/// `/admin/prefetch/{id}`: GET reports a prefetch, as JSON or as events; DELETE cancels it.
struct PrefetchEndpoint: Endpoint {
  let path = EndpointPath.item(under: "/admin/prefetch/")
  let methods: [Method] = [.get, .head, .delete]
  let access = EndpointAccess.operators

  func handle(_ context: RequestContext) throws(ImageError) -> Disposition {
    let prefetcher = context.services.prefetcher
    guard context.client.method != .delete else {
      _ = try AdminQuery(context.query)
      guard prefetcher.cancelPrefetch(context.name) else { throw context.notFound }
      return .json(try JSONResponse(["cancelled": true]))
    }
    let query = try AdminQuery(context.query, allowed: ["interval"])
    let interval = try query.fraction("interval") ?? 0.01
    guard let status = prefetcher.prefetchStatus(context.name) else { throw context.notFound }
    guard context.wantsEvents else { return .json(try JSONResponse(status)) }
    return .events(interval: interval) { events in
      let observation = prefetcher.observePrefetch(status.id) { events.report($0) }
      // The prefetch may have ended before the observation began.
      events.report(prefetcher.prefetchStatus(status.id) ?? status)
      return observation
    }
  }
}
