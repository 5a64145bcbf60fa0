// PrefetchesEndpoint: lists and starts prefetches.

import Model

/// `/admin/prefetch`: GET lists the prefetches, POST starts one for the images that the body lists.
struct PrefetchesEndpoint: Endpoint {
  /// Maximum length of a list, in bytes. The rest of a longer one is read, so that 413 arrives.
  static let maximumListLength = 16 << 20

  let path = EndpointPath.exact("/admin/prefetch")
  let methods: [Method] = [.get, .head, .post]
  let access = EndpointAccess.operators

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
