// AdminCacheEndpointTests: tests of the cache endpoints: purge, clear, clean, look up.

@testable import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct AdminCacheEndpointTests {
  private let services = TestServices()
  private let url = "https%3A%2F%2Fh%2Fa.jpg"

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
    try await withOperators(services, configure: withRules) { client, header in
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
    try await withOperators(services, configure: withRules) { client, header in
      let answer = try client.request("DELETE", target: "/admin/cache" + query, headers: header)
      #expect(answer.status == 400)
      #expect(answer.text.contains(words), "\(answer.text)")
    }
    #expect(services.purged.withLock { $0.isEmpty })
  }

  @Test func `a prefix may end anywhere after its host, and the fragment of a URL is ignored`()
    async throws
  {
    try await withOperators(services) { client, header in
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
    try await withOperators(services) { client, header in
      let answer = try client.request("DELETE", target: "/admin/cache?tag=shop", headers: header)
      #expect(answer.text.contains("no host rule has a tag"))
    }
  }

  // MARK: Clear and clean

  @Test func `a clear removes the named tiers, or both without a name`() async throws {
    services.removed.withLock { $0.disk = 7 }
    try await withOperators(services) { client, header in
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
    try await withOperators(services) { client, header in
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
    try await withOperators(services) { client, header in
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
    try await withOperators(services) { client, header in
      let head = try client.head("/admin/cache?w=10&url=" + url, headers: header)
      #expect(head.status == 404 && head["Cache-Status"] == nil)
      let get = try client.get("/admin/cache?w=10&url=" + url, headers: header)
      #expect(get.status == 404 && get.text.contains("\"code\" : \"undecodable\""))
      let other = try client.get("/admin/cache?w=20&url=" + url, headers: header)
      #expect(other.status == 404 && other.text.contains("\"failed\" : null"))
    }
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
