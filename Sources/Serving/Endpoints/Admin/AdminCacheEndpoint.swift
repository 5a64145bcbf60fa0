// AdminCacheEndpoint: looks up, stores and purges cache entries.

import Model

/// `/admin/cache`: GET reports where a response is cached, PUT stores a source, DELETE purges.
struct AdminCacheEndpoint: Endpoint {
  let path = EndpointPath.exact("/admin/cache")
  let methods: [Method] = [.get, .head, .put, .delete]
  let access = EndpointAccess.operators

  func scope(for method: Method) -> OperatorScope {
    switch method {
    case .delete: .purge
    case .put: .write
    default: .read
    }
  }

  func bodyPolicy(for method: Method, in configuration: ServerConfiguration) -> BodyPolicy {
    method == .put ? .file(limit: configuration.maximumUpload) : .discard
  }

  func handle(_ context: RequestContext) throws(ImageError) -> Disposition {
    switch context.client.method {
    case .delete: try purge(context)
    case .put: try store(context)
    default: try lookUp(context)
    }
  }

  /// Purges the entries in the query's scope, or removes them from one tier.
  private func purge(_ context: RequestContext) throws(ImageError) -> Disposition {
    let cache = context.services.cache
    let filter = context.keyFilter
    let (scope, tier) = try PurgeScope.parse(context.query, filter: filter)
    return .jsonLater { () async throws(ImageError) in
      ["purged": try await cache.remove(scope, from: tier, filter: filter)]
    }
  }

  /// Reports where the response to an `/image` request is cached (SDWebImage's existence checks).
  private func lookUp(_ context: RequestContext) throws(ImageError) -> Disposition {
    let rules = context.policy.operatorRules
    let request = rules.request(
      try ImageParameter.parse(context.query, rules: rules), accepting: context.acceptedFormats)
    let services = context.services
    return .suspend(.always) { () async throws(ImageError) in
      let lookup = await services.cache.look(for: request)
      let transform = request.transform.canonicalText
      let failure = services.manager.failedURLs().first {
        $0.url == request.key.url && ($0.transform ?? transform) == transform
      }
      let report = CacheReport(lookup, failed: failure, now: Clock.now())
      return .json(
        try JSONResponse(report, status: lookup.isEmpty ? 404 : 200, fields: report.fields))
    }
  }

  /// Stores the request body as a source (SDWebImage's storeImage). Responds 201 if the cache had
  /// no entry, otherwise 200 (RFC 9110, section 9.3.4).
  private func store(_ context: RequestContext) throws(ImageError) -> Disposition {
    guard !context.handler.isDraining else { throw .draining }
    let query = try AdminQuery(context.query, allowed: ["url"])
    guard let text = query["url"] else { throw .missingParameter("url") }
    let url = context.keyFilter.keyURL(of: try SourceURL(parsing: text))
    // Content-Range marks a partial body (RFC 9110, section 14.5).
    if let range = context.field("Content-Range") {
      throw .invalidParameter(
        name: "Content-Range", value: displayable(range), allowed: "whole images only")
    }
    let origin = OriginResponse(requestOn: context.connection)
    let body = context.client.takeBody()
    let cache = context.services.cache
    var transform = Transform()
    transform.output.qualities = context.policy.rules.qualities
    let plain = ImageRequest(source: url, transform: transform)
    return .suspend(.always) { () async throws(ImageError) in
      let file = try body.file()
      let isNew = await cache.look(for: plain).isEmpty
      let report = try await cache.put(url, file: file, origin: origin)
      return .json(try JSONResponse(["purged": report], status: isNew ? 201 : 200))
    }
  }
}
