// AdminCacheEndpoint: looks up, stores, purges and clears cache entries.

import Core

/// `/admin/cache`: GET reports where a response is cached, PUT stores a source, DELETE purges.
struct AdminCacheEndpoint: Endpoint {
  let path = EndpointPath.exact("/admin/cache")
  let methods: [Method] = [.get, .head, .put, .delete]

  func scope(for method: Method) -> OperatorScope {
    switch method {
    case .delete: .purge
    case .put: .write
    default: .read
    }
  }

  func operation(for method: Method) -> Operation? {
    switch method {
    case .delete:
      Operation(
        summary: "Purge what one of url, prefix, host and tag names",
        query: [
          "url": "A URL with all its variants", "prefix": "The beginning of URLs",
          "host": "A host, or *.example.com", "tag": "A tag of host rules",
          "tier": "memory, disk, shared or all: remove from this tier alone",
        ])
    case .put:
      Operation(
        summary: "Store the body as the source of a URL", query: ["url": "The URL"],
        body: "application/octet-stream", statuses: [200, 201])
    default: Operation(summary: "Where the answer is cached", takesImageQuery: true)
    }
  }

  func bodyPolicy(for method: Method, in configuration: ServerConfiguration) -> BodyPolicy {
    method == .put ? .file(limit: configuration.download.maximumBytes) : .discard
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

/// `/admin/cache/clear`: POST empties the tier that `tier` names. Without it, purges everything.
struct ClearCacheEndpoint: Endpoint {
  let path = EndpointPath.exact("/admin/cache/clear")
  let methods: [Method] = [.post]

  func scope(for method: Method) -> OperatorScope { .purge }

  func operation(for method: Method) -> Operation? {
    Operation(summary: "Empty the cache", query: ["tier": "memory, disk or all (the default)"])
  }

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

/// The JSON report of where a response is cached.
private struct CacheReport: Encodable {
  private struct Entry: Encodable {
    let bytes: Int
    let age: Int
    let ttl: Int

    init(_ entry: CacheEntryInfo, at now: UnixTime) {
      bytes = entry.bytes
      age = entry.freshness.age(at: now)
      ttl = entry.freshness.lifetime - age
    }
  }

  private enum CodingKeys: CodingKey {
    case memory, disk, source, failed
  }

  private let memory: Entry?
  private let disk: Entry?
  private let source: Entry?
  private let failed: FailedURL?

  /// Reports a look-up.
  ///
  /// - Parameter failed: the remembered failure of the URL; `nil` if there is none.
  init(_ lookup: CacheLookup, failed: FailedURL?, now: UnixTime) {
    memory = lookup.memory.map { Entry($0, at: now) }
    disk = lookup.disk.map { Entry($0, at: now) }
    source = lookup.source.map { Entry($0, at: now) }
    self.failed = failed
  }

  /// `Cache-Status` (RFC 9211) and `Age` of the entry a request would hit first; empty without an
  /// entry.
  var fields: [(name: StaticString, value: String)] {
    let places = [("memory", memory), ("disk", disk), ("source", source)]
    let found = places.compactMap { name, entry in entry.map { (name, $0) } }
    guard let (_, first) = found.first else { return [] }
    let names = found.map(\.0).joined(separator: " ")
    return [
      ("Cache-Status", "pictor; hit; ttl=\(first.ttl); detail=\"\(names)\""),
      ("Age", "\(first.age)"),
    ]
  }

  /// Encodes missing entries as null.
  func encode(to encoder: any Encoder) throws {
    var members = encoder.container(keyedBy: CodingKeys.self)
    try members.encode(memory, forKey: .memory)
    try members.encode(disk, forKey: .disk)
    try members.encode(source, forKey: .source)
    try members.encode(failed, forKey: .failed)
  }
}

extension OriginResponse {
  /// Creates a response from the fields of a request, as if the origin had sent them.
  init(requestOn connection: OpaquePointer) {
    self.init(status: 200)
    RequestHandler.forEachField(on: connection) {
      take(String(cString: $0).lowercased(), value: String(cString: $1))
    }
  }

  private mutating func take(_ name: String, value: String) {
    switch name {
    // Several fields form one list (RFC 9110, section 5.3).
    case "cache-control": cacheControl = cacheControl.map { $0 + ", " + value } ?? value
    case "expires": expires = value
    case "etag": etag = value
    case "last-modified": lastModified = value
    case "content-type": contentType = value
    default: break
    }
  }
}
