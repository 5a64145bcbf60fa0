// PrefetchesEndpoint: lists and starts prefetches; reports, watches and cancels one.

import Core

/// `/admin/prefetch`: GET lists the prefetches, POST starts one for the images that the body lists.
struct PrefetchesEndpoint: Endpoint {
  /// Maximum length of a list, in bytes. The rest of a longer one is read, so that 413 arrives.
  static let maximumListLength = 16 << 20

  let path = EndpointPath.exact("/admin/prefetch")
  let methods: [Method] = [.get, .head, .post]

  func bodyPolicy(for method: Method, in configuration: ServerConfiguration) -> BodyPolicy {
    method == .post ? .memory(limit: Self.maximumListLength) : .discard
  }

  func handle(_ context: RequestContext) throws(ImageError) -> Disposition {
    _ = try context.trail()
    let prefetcher = context.services.prefetcher
    guard context.client.method == .post else {
      _ = try AdminQuery(context.query)
      return .jsonLater { ["prefetches": prefetcher.prefetches()] }
    }
    guard !context.handler.isDraining else { throw .draining }
    let query = try AdminQuery(context.query, repeatable: ["preset"])
    let presets = query.all("preset")
    let list = try context.client.takeBody().bytes()
    let rules = context.policy.operatorRules
    let accepted = context.acceptedFormats
    // Parsed outside the event loop: a long list would delay its other connections.
    return .suspend(.limited) { () async throws(ImageError) in
      let lines = try PrefetchRequestParser.parse(
        list, presets: presets, accepting: accepted, rules: rules)
      let id = try prefetcher.prefetch(lines)
      return .json(
        try JSONResponse(PrefetchStatus(id: id, total: lines.count), status: 202))
    }
  }
}

/// `/admin/prefetch/{id}`: GET reports a prefetch, as JSON or as events; DELETE cancels it.
struct PrefetchEndpoint: Endpoint {
  let path = EndpointPath.item(under: "/admin/prefetch/")
  let methods: [Method] = [.get, .head, .delete]

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
