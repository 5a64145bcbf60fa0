// CleanCacheEndpoint: removes expired and excess cache entries.

import Model

/// `/admin/cache/clean`: POST removes what expired, and what exceeds the limits.
struct CleanCacheEndpoint: Endpoint {
  let path = EndpointPath.exact("/admin/cache/clean")
  let methods: [Method] = [.post]
  let access = EndpointAccess.operators

  func scope(for method: Method) -> OperatorScope { .purge }

  func handle(_ context: RequestContext) throws(ImageError) -> Disposition {
    _ = try AdminQuery(context.query)
    let cache = context.services.cache
    return .jsonLater { await cache.clean() }
  }
}
