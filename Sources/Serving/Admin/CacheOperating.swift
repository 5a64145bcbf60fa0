// CacheOperating: the admin endpoints that purge, look up and store cache entries.

import CMicrohttpd
import Glibc
import Model

extension RequestContext {
  /// Purges entries, clears tiers, or removes expired and excess entries.
  func empty(_ route: Route, _ target: RequestTarget) throws(ImageError) -> MHD_Result {
    let cache = handler.operations.cache
    switch route {
    case .cleanCache:
      _ = try OperatorQuery(target.query, allowed: [])
      return answerLater { await cache.clean() }
    case .clearCache:
      let tiers = try StoreTiers(toClear: target.query)
      return answerLater { () async throws(ImageError) in ["purged": try await cache.clear(tiers)] }
    default:
      let scope = try PurgeScope(target.query, filter: handler.configuration.keyFilter)
      return answerLater { () async throws(ImageError) in ["purged": try await cache.purge(scope)] }
    }
  }

  /// Reports where the response to an `/image` request is cached (SDWebImage's existence checks).
  func look(_ target: RequestTarget) throws(ImageError) -> MHD_Result {
    let rules = handler.operatorRules
    let request = rules.request(
      try ImageParameter.parse(target.query, rules: rules),
      accepting: client.worker.accept.formats(on: connection))
    let (cache, manager) = (handler.operations.cache, handler.operations.manager)
    return suspend(beyondLimit: true) { () async throws(ImageError) in
      let look = await cache.look(for: request)
      let transform = request.transform.canonicalText
      let failure = manager.failedURLs().first {
        $0.url == request.key.url && ($0.transform ?? transform) == transform
      }
      let report = CacheReport(look, failed: failure, now: Clock.now())
      return .done(
        try Self.json(report), status: look.isEmpty ? 404 : 200, fields: report.fields)
    }
  }

  /// Stores the request body as a source (SDWebImage's storeImage). Responds 201 if the cache had
  /// no entry, otherwise 200 (RFC 9110, section 9.3.4).
  func put(_ target: RequestTarget) throws(ImageError) -> MHD_Result {
    guard !handler.isDraining else { throw .draining }
    let query = try OperatorQuery(target.query, allowed: ["url"])
    guard let text = query["url"] else { throw .missingParameter("url") }
    let url = handler.configuration.keyFilter.keyURL(of: try SourceURL(parsing: text))
    // Content-Range marks a partial body (RFC 9110, section 14.5).
    if let range = RequestHandler.header("Content-Range", of: connection) {
      throw .invalidParameter(
        name: "Content-Range", value: displayable(String(cString: range)),
        allowed: "whole images only")
    }
    let (origin, upload) = (OriginResponse(givenOn: connection), client.takeUpload())
    let cache = handler.operations.cache
    var transform = Transform()
    transform.qualities = handler.rules.qualities
    let plain = ImageRequest(source: url, transform: transform)
    return suspend(beyondLimit: true) { () async throws(ImageError) in
      let file = try upload.file()
      let isNew = await cache.look(for: plain).isEmpty
      let report = try await cache.put(url, file, origin)
      return .done(try Self.json(["purged": report]), status: isNew ? 201 : 200)
    }
  }
}

/// The JSON report of where a response is cached.
private struct CacheReport: Encodable {
  private struct Entry: Encodable {
    let bytes: Int
    let age: Int
    let ttl: Int

    init(_ entry: CacheEntryInfo, _ now: UnixTime) {
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

  init(_ look: CacheLookup, failed: FailedURL?, now: UnixTime) {
    memory = look.memory.map { Entry($0, now) }
    disk = look.disk.map { Entry($0, now) }
    source = look.source.map { Entry($0, now) }
    self.failed = failed
  }

  /// `Cache-Status` (RFC 9211) and `Age` of the entry a request would hit first; empty without an
  /// entry.
  var fields: [AnswerField] {
    let places = [("memory", memory), ("disk", disk), ("source", source)]
    let kept = places.compactMap { name, entry in entry.map { (name, $0) } }
    guard let (_, first) = kept.first else { return [] }
    let names = kept.map(\.0).joined(separator: " ")
    return [
      AnswerField(
        name: "Cache-Status", value: "pictor; hit; ttl=\(first.ttl); detail=\"\(names)\""),
      AnswerField(name: "Age", value: "\(first.age)"),
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

extension PurgeScope {
  /// The parameter names.
  private static let names = ["url", "prefix", "host", "tag"]

  /// Parses the query of a purge: exactly one of `url`, `prefix`, `host` and `tag`.
  ///
  /// - Throws: `unknownParameter`, `invalidParameter`, `missingParameter` or `invalidURL`. A scope
  ///   that cannot match anything is refused, so that a typing error is not reported as a purge.
  init(_ query: ArraySlice<UInt8>, filter: CacheKeyFilter) throws(ImageError) {
    let query = try OperatorQuery(query, allowed: Self.names)
    let given = Self.names.flatMap { name in query.all(name).map { (name, $0) } }
    guard let (name, text) = given.first else {
      throw .missingParameter("url, prefix, host or tag")
    }
    func refuse(_ name: String, _ text: String, _ allowed: String) -> ImageError {
      .invalidParameter(name: name, value: displayable(text), allowed: allowed)
    }
    if given.count > 1 {
      throw refuse(given[1].0, given[1].1, "one of url, prefix, host and tag, and only one")
    }
    switch name {
    case "url": self = .url(filter.keyURL(of: try SourceURL(parsing: text)))
    case "prefix":
      guard Self.isPrefix(text), let prefix = try? SourceURL(parsing: text) else {
        throw refuse(name, text, Self.prefixAllowed)
      }
      self = .prefix(prefix)
    case "host":
      // A single colon separates a port; an IPv6 address has at least two.
      guard let host = HostPattern(text), text.utf8.count(where: { $0 == UInt8(ascii: ":") }) != 1
      else {
        throw refuse(
          name, text,
          "a host without scheme, port and path, such as example.com, *.example.com, or * for all")
      }
      self = .host(host)
    default:
      let tags = filter.allTags
      guard tags.contains(text) else {
        throw refuse(
          name, text,
          tags.isEmpty
            ? "no host rule has a tag" : "a tag of a host rule: " + tags.joined(separator: ", "))
      }
      self = .tag(text)
    }
  }
}

extension PurgeScope {
  private static let prefixAllowed = """
    the beginning of a URL with its whole host and the slash behind it, such as https://example.com/a, without # and \
    without * at its end; host= takes away all of a host, or of the hosts below one
    """

  /// Whether a text can be the beginning of a URL that is kept. A host without a slash behind it would mean that host
  /// alone, where a part of its name may be meant; what follows a `#` is kept nowhere.
  private static func isPrefix(_ text: String) -> Bool {
    guard let mark = text.firstRange(of: "://") else { return false }
    let rest = text[mark.upperBound...]
    guard let slash = rest.firstIndex(where: { "/?#".contains($0) }), rest[slash] == "/" else {
      return false
    }
    return !rest[..<slash].contains("*") && !text.contains("#") && !text.hasSuffix("*")
  }
}

extension StoreTiers {
  /// Parses the query of a clear: `tier`, by default all tiers.
  fileprivate init(toClear query: ArraySlice<UInt8>) throws(ImageError) {
    let query = try OperatorQuery(query, allowed: ["tier"])
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

extension OriginResponse {
  /// Creates a response from the request fields, as if the origin had sent them.
  fileprivate init(givenOn connection: OpaquePointer) {
    self.init(status: 200)
    withUnsafeMutablePointer(to: &self) { origin in
      _ = MHD_get_connection_values(
        connection, .HEADER_KIND,
        { context, _, name, value in
          guard let context, let name, let value else { return .YES }
          let origin = context.assumingMemoryBound(to: OriginResponse.self)
          origin.pointee.take(String(cString: name).lowercased(), String(cString: value))
          return .YES
        }, origin)
    }
  }

  private mutating func take(_ name: String, _ value: String) {
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
