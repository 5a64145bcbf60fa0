// AdminCacheEndpointTests: tests of the cache endpoints: purge, clear, clean, look up, store.

import Model
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct AdminCacheEndpointTests {
  private let token = "correct-horse-battery"
  private let services = TestServices()
  private let url = "https%3A%2F%2Fh%2Fa.jpg"

  private func withOperators(
    configure: @escaping (inout ServerConfiguration) -> Void = { _ in },
    body: (HTTPClient, KeyValuePairs<String, String>) async throws -> Void
  ) async throws {
    try await withServer(
      TestProvider(), services: services,
      configure: {
        $0.operatorTokens = [token]
        configure(&$0)
      }
    ) { server in
      try await body(try HTTPClient(port: server.port), ["Authorization": "Bearer " + token])
    }
  }

  private func withRules(_ configuration: inout ServerConfiguration) {
    guard let host = HostPattern("h") else { return }
    configuration.keyFilter = CacheKeyFilter(rules: [
      HostRule(
        host: host, parameters: .drop([ParameterPattern("utm_*")].compactMap { $0 }),
        tags: ["shop", "blog"])
    ])
  }

  // MARK: Purge

  @Test func `each purge scope reaches the cache, with a URL filtered like a key`() async throws {
    services.removed.withLock {
      $0.memory = 2
      $0.disk = nil
      $0.failed = 1
    }
    try await withOperators(configure: withRules) { client, header in
      for query in [
        "url=https%3A%2F%2FH%2Fa.jpg%3Futm_x%3D1%26id%3D2", "prefix=https%3A%2F%2Fh%2F", "host=*.h",
        "tag=shop",
      ] {
        let answer = try client.request("DELETE", target: "/admin/cache?" + query, headers: header)
        #expect(answer.status == 200)
        for part in ["\"purged\"", "\"memory\" : 2", "\"disk\" : null", "\"failed\" : 1"] {
          #expect(answer.text.contains(part), "\(answer.text)")
        }
      }
    }
    #expect(
      services.purged.withLock { $0 } == [
        .url(try SourceURL(parsing: "https://h/a.jpg?id=2")),
        .prefix(try SourceURL(parsing: "https://h/")), .host(try #require(HostPattern("*.h"))),
        .tag("shop"),
      ])
  }

  @Test(arguments: [
    ("", "the parameter 'url, prefix, host or tag' is required"),
    ("?url=https://h/a&host=h", "one of url, prefix, host and tag, and only one"),
    ("?host=a&host=b", "one of url, prefix, host and tag, and only one"),
    ("?url=a.jpg", "invalid_url"), ("?url=", "it is empty"), ("?url=//h/a", "it has no scheme"),
    ("?prefix=h/a", "the slash behind it"), ("?prefix=", "the slash behind it"),
    ("?prefix=https://", "the slash behind it"), ("?prefix=http://127", "the slash behind it"),
    ("?prefix=https://h", "the slash behind it"), ("?prefix=https://h:8080", "the slash behind it"),
    ("?prefix=https://h?x=1/", "the slash behind it"),
    ("?prefix=https://h%23/", "the slash behind it"),
    ("?prefix=https://h/a%23b", "without #"), ("?prefix=https://h/a*", "without *"),
    ("?prefix=https://*.h/", "host= takes away"), ("?prefix=ftp://h/", "beginning of a URL"),
    ("?prefix=https://u:p@h/", "beginning of a URL"),
    ("?host=h%2Fa", "without scheme, port and path"),
    ("?host=h:8080", "without scheme, port and path"), ("?host=", "without scheme, port and path"),
    ("?host=https://h", "without scheme, port and path"),
    ("?host=[::1]:80", "without scheme, port and path"),
    ("?host=h.*", "without scheme, port and path"), ("?tag=", "a tag of a host rule: blog, shop"),
    ("?tag=sohp", "a tag of a host rule: blog, shop"), ("?everything=1", "unknown_parameter"),
  ])
  func `a missing, ambiguous or invalid purge scope is refused`(
    query: String, words: String
  ) async throws {
    try await withOperators(configure: withRules) { client, header in
      let answer = try client.request("DELETE", target: "/admin/cache" + query, headers: header)
      #expect(answer.status == 400)
      #expect(answer.text.contains(words), "\(answer.text)")
    }
    #expect(services.purged.withLock { $0.isEmpty })
  }

  @Test func `a prefix may end anywhere after its host, and the fragment of a URL is ignored`()
    async throws
  {
    try await withOperators { client, header in
      for query in [
        "prefix=http://127.0.0.1/", "prefix=https://H:8443/a", "prefix=https://h/a?x=1",
        "prefix=local:///shop/", "prefix=http://[::1]/", "url=https://h/a%23top",
      ] {
        let answer = try client.request("DELETE", target: "/admin/cache?" + query, headers: header)
        #expect(answer.status == 200, "\(query): \(answer.text)")
      }
    }
    func prefix(_ text: String) throws -> PurgeScope { .prefix(try SourceURL(parsing: text)) }
    #expect(
      try services.purged.withLock { $0 } == [
        prefix("http://127.0.0.1/"), prefix("https://h:8443/a"), prefix("https://h/a?x=1"),
        prefix("local:///shop/"), prefix("http://[::1]/"),
        .url(SourceURL(parsing: "https://h/a")),
      ])
  }

  @Test func `without tags in host rules every tag is refused`() async throws {
    try await withOperators { client, header in
      let answer = try client.request("DELETE", target: "/admin/cache?tag=shop", headers: header)
      #expect(answer.text.contains("no host rule has a tag"))
    }
  }

  @Test func `a purge is admitted while the server is overloaded`() async throws {
    try await withOperators(configure: { $0.maximumActiveRequests = 0 }) { client, header in
      let answer = try client.request("DELETE", target: "/admin/cache?url=" + url, headers: header)
      #expect(answer.status == 200)
      #expect(try client.get(imageTarget).status == 503)
    }
  }

  @Test func `a request without a token reaches no cache endpoint`() async throws {
    try await withOperators { client, _ in
      for method in ["DELETE", "GET", "HEAD", "PUT"] {
        let answer = try client.request(method, target: "/admin/cache?url=" + url)
        #expect(answer.status == 401)
      }
      for path in ["/admin/cache/clear", "/admin/cache/clean"] {
        let answer = try client.request("POST", target: path)
        #expect(answer.status == 401)
      }
    }
    #expect(services.purged.withLock { $0.isEmpty } && services.put.withLock { $0.isEmpty })
  }

  @Test func `each cache endpoint allows its own methods`() async throws {
    try await withOperators { client, header in
      let cache = try client.request("POST", target: "/admin/cache", headers: header)
      #expect(cache.status == 405 && cache["Allow"] == "GET, HEAD, PUT, DELETE, OPTIONS")
      for path in ["/admin/cache/clear", "/admin/cache/clean"] {
        let answer = try client.get(path, headers: header)
        #expect(answer.status == 405 && answer["Allow"] == "POST, OPTIONS")
      }
    }
  }

  // MARK: Clear and clean

  @Test func `a clear removes the named tiers, or both without a name`() async throws {
    services.removed.withLock { $0.disk = 7 }
    try await withOperators { client, header in
      for query in ["", "?tier=all", "?tier=memory", "?tier=disk"] {
        let answer = try client.request(
          "POST", target: "/admin/cache/clear" + query, headers: header)
        #expect(answer.status == 200 && answer.text.contains("\"disk\" : 7"))
      }
      let wrong = try client.request("POST", target: "/admin/cache/clear?tier=cpu", headers: header)
      #expect(wrong.status == 400 && wrong.text.contains("memory, disk or all"))
    }
    #expect(services.cleared.withLock { $0 } == [.all, .all, .memory, .disk])
  }

  @Test func `a clean reports what it removed`() async throws {
    try await withOperators { client, header in
      let answer = try client.request("POST", target: "/admin/cache/clean", headers: header)
      #expect(answer.status == 200)
      #expect(answer.text.contains("\"expired\" : 4") && answer.text.contains("\"evicted\" : 5"))
    }
  }

  // MARK: Look

  @Test func `a look reports each tier with an entry and its remaining lifetime`()
    async throws
  {
    let now = UnixTime.now.seconds
    func entry(_ bytes: Int) -> CacheEntryInfo {
      CacheEntryInfo(
        bytes: bytes,
        freshness: Freshness(receivedAt: UnixTime(seconds: now - 10), lifetime: 1_000),
        generation: 0)
    }
    services.kept.withLock {
      $0.disk = entry(18)
      $0.source = entry(900)
    }
    try await withOperators { client, header in
      let head = try client.head("/admin/cache?w=10&url=" + url, headers: header)
      #expect(head.status == 200)
      let age = try #require(head["Age"].flatMap { Int($0) })
      #expect((10..<100).contains(age))
      #expect(
        head["Cache-Status"] == "pictor; hit; ttl=\(1_000 - age); detail=\"disk source\"")
      let get = try client.get("/admin/cache?w=10&url=" + url, headers: header)
      for part in ["\"memory\" : null", "\"bytes\" : 18", "\"bytes\" : 900", "\"failed\" : null"] {
        #expect(get.text.contains(part), "\(get.text)")
      }
      #expect(get["Cache-Control"] == "no-store")
      let wrong = try client.get("/admin/cache?w=0&url=" + url, headers: header)
      #expect(wrong.status == 400)
    }
    #expect(services.looked.withLock { $0.map(\.transform.width) } == [10, 10])
  }

  @Test func `a look for an absent entry returns 404 with its remembered failure`()
    async throws
  {
    let scaled = Transform.canonicalText(width: 10)
    services.failed.withLock { failed in
      failed = [
        FailedURL(
          url: "https://h/a.jpg", transform: scaled, code: "undecodable", status: 422, seconds: 9)
      ]
    }
    try await withOperators { client, header in
      let head = try client.head("/admin/cache?w=10&url=" + url, headers: header)
      #expect(head.status == 404 && head["Cache-Status"] == nil)
      let get = try client.get("/admin/cache?w=10&url=" + url, headers: header)
      #expect(get.status == 404 && get.text.contains("\"code\" : \"undecodable\""))
      let other = try client.get("/admin/cache?w=20&url=" + url, headers: header)
      #expect(other.status == 404 && other.text.contains("\"failed\" : null"))
    }
  }

  // MARK: Put

  private let fields: KeyValuePairs<String, String> = [
    "Authorization": "Bearer correct-horse-battery", "Content-Type": "image/png",
    "Cache-Control": "max-age=60", "cache-control": "immutable", "ETag": "\"v1\"",
    "Expires": "Sun, 06 Nov 1994 08:49:37 GMT", "Last-Modified": "Sat, 05 Nov 1994 08:49:37 GMT",
  ]

  @Test func `an uploaded body is stored under its URL with the freshness of its header`()
    async throws
  {
    let body = (0..<300_000).map { UInt8(truncatingIfNeeded: $0) }
    try await withOperators(configure: withRules) { client, _ in
      let answer = try client.request(
        "PUT", target: "/admin/cache?url=https%3A%2F%2Fh%2Fa.jpg%3Futm_x%3D1", headers: fields,
        body: body)
      #expect(answer.status == 201 && answer.text.contains("\"purged\""), "\(answer.text)")
      services.kept.withLock {
        $0.source = CacheEntryInfo(bytes: 1, freshness: makeInfo().freshness, generation: 0)
      }
      let again = try client.request(
        "PUT", target: "/admin/cache?url=" + url, headers: fields, body: [1])
      #expect(again.status == 200)
    }
    let put = services.put.withLock { $0 }
    #expect(put.count == 2)
    let first = try #require(put.first)
    #expect(first.url.text == "https://h/a.jpg" && first.bytes == body)
    var origin = OriginResponse(status: 200)
    origin.contentType = "image/png"
    origin.cacheControl = "max-age=60, immutable"
    origin.etag = "\"v1\""
    origin.expires = "Sun, 06 Nov 1994 08:49:37 GMT"
    origin.lastModified = "Sat, 05 Nov 1994 08:49:37 GMT"
    #expect(first.origin == origin)
  }

  @Test func `an upload that is too long, empty or partial is refused`() async throws {
    try await withOperators(configure: {
      $0.maximumUpload = 1_000
      $0.explainsErrors = true
    }) { client, header in
      let long = try client.request(
        "PUT", target: "/admin/cache?url=" + url, headers: header,
        body: [UInt8](repeating: 1, count: 100_000))
      #expect(long.status == 413 && long.text.contains("more than 1000 bytes"))
      #expect(long.text.contains("download.maximum_bytes"))
      let exact = try client.request(
        "PUT", target: "/admin/cache?url=" + url, headers: header,
        body: [UInt8](repeating: 1, count: 1_000)
      )
      #expect(exact.status == 201)
      let none = try client.request(
        "PUT", target: "/admin/cache?url=" + url, headers: header, body: [])
      #expect(none.status == 415)
      let part = try client.request(
        "PUT", target: "/admin/cache?url=" + url,
        headers: ["Authorization": "Bearer " + token, "Content-Range": "bytes 0-1/9"], body: [1, 2])
      #expect(part.status == 400 && part.text.contains("whole images only"))
      let nowhere = try client.request("PUT", target: "/admin/cache", headers: header, body: [1])
      #expect(nowhere.status == 400 && nowhere.text.contains("missing_parameter"))
    }
    #expect(services.put.withLock { $0.count } == 1)
  }

  @Test(arguments: [
    ("PUT", "/admin/cache?url=x", true, 413), ("PUT", "/admin/cache?url=x", false, 401),
    ("POST", "/admin/prefetch", true, 413), ("POST", "/admin/cache", true, 405),
    ("POST", "/nowhere", true, 404), ("POST", "/admin/cache/clear", true, 413),
  ])
  func `a refused request with a body is answered before the body arrives`(
    method: String, path: String, isOperator: Bool, status: Int
  ) async throws {
    try await withOperators(configure: { $0.maximumUpload = 1_000 }) { client, _ in
      let token = isOperator ? self.token : "another"
      // No byte of it follows, and no upload takes place.
      try client.send(
        HTTPClient.text(
          method, target: path,
          headers: ["Authorization": "Bearer " + token, "Expect": "100-continue"],
          bodyLength: 100 << 20))
      let answer = try client.readAnswer()
      #expect(answer.status == status)
      #expect(answer["Connection"] == "close")
      try client.waitForClose()
    }
    #expect(services.cleared.withLock { $0.isEmpty })
  }

  @Test func `a refused upload returns the cache's error`() async throws {
    services.putFailure.withLock { $0 = .overloaded(queue: "disk", retryAfter: 1) }
    try await withOperators { client, header in
      let answer = try client.request(
        "PUT", target: "/admin/cache?url=" + url, headers: header, body: [1])
      #expect(answer.status == 503 && answer["Retry-After"] == "1")
    }
  }

  @Test func `a client that expects 100-continue receives it`() async throws {
    try await withOperators { client, _ in
      try client.send(
        HTTPClient.text(
          "PUT", target: "/admin/cache?url=" + url,
          headers: ["Authorization": "Bearer " + token, "Expect": "100-continue"], bodyLength: 3))
      let line = "HTTP/1.1 100 Continue\r\n\r\n"
      #expect(try client.read(line.utf8.count) == Array(line.utf8))
      try client.send(bytes: [1, 2, 3])
      #expect(try client.readAnswer().status == 201)
    }
    #expect(services.put.withLock { $0.first?.bytes } == [1, 2, 3])
  }
}

extension Transform {
  /// Returns the canonical text for an image of this width.
  fileprivate static func canonicalText(width: Int) -> String {
    var transform = Transform()
    transform.width = width
    return transform.canonicalText
  }
}
