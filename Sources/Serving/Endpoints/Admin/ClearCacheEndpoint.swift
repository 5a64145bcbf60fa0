// ClearCacheEndpoint: clears cache tiers.

import Model

/// `/admin/cache/clear`: POST empties the tier that `tier` names. Without it, purges everything.
struct ClearCacheEndpoint: Endpoint {
  let path = EndpointPath.exact("/admin/cache/clear")
  let methods: [Method] = [.post]
  let access = EndpointAccess.operators

  func scope(for method: Method) -> OperatorScope { .purge }

  func handle(_ context: RequestContext) throws(ImageError) -> Disposition {
    let cache = context.services.cache
    let tiers = try StoreTiers(toClear: context.query)
    return .jsonLater { () async throws(ImageError) in ["purged": try await cache.clear(tiers)] }
  }
}

extension StoreTiers {
  /// Parses `tier`: `memory`, `disk` or `all`, the default.
  ///
  /// - Throws: `unknownParameter`, or `invalidParameter` for another value.
  fileprivate init(toClear query: ArraySlice<UInt8>) throws(ImageError) {
    let query = try AdminQuery(query, allowed: ["tier"])
    switch query["tier"] {
    case nil, "all": self = .all
    case "memory": self = .memory
    case "disk": self = .disk
    case .some(let text):
      throw .invalidParameter(
        name: "tier", value: displayable(text), allowed: "memory, disk or all")
    }
  }
}
