// CacheUploadTests: tests of PUT /admin/cache, and of refused requests with a body.

@testable import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct CacheUploadTests {
  private let services = TestServices()
  private let url = "https%3A%2F%2Fh%2Fa.jpg"

  private func dropTracking(_ configuration: inout ServerConfiguration) {
    guard let host = HostPattern("h") else { return }
    configuration.keyFilter = CacheKeyFilter(rules: [
      HostRule(host: host, parameters: .drop([ParameterPattern("utm_*")].compactMap { $0 }))
    ])
  }

  private let fields: KeyValuePairs<String, String> = [
    "Authorization": "Bearer correct-horse-battery", "Content-Type": "image/png",
    "Cache-Control": "max-age=60", "cache-control": "immutable", "ETag": "\"v1\"",
    "Expires": "Sun, 06 Nov 1994 08:49:37 GMT", "Last-Modified": "Sat, 05 Nov 1994 08:49:37 GMT",
  ]

  @Test func `an uploaded body is stored under its URL with the freshness of its header`()
    async throws
  {
    let body = (0..<300_000).map { UInt8(truncatingIfNeeded: $0) }
    try await withOperators(services, configure: dropTracking) { client, _ in
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
    try await withOperators(services) {
      $0.download.maximumBytes = 1_000
      $0.explainsErrors = true
    } body: { client, header in
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
        headers: ["Authorization": "Bearer " + operatorToken, "Content-Range": "bytes 0-1/9"],
        body: [1, 2])
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
    try await withOperators(services, configure: { $0.download.maximumBytes = 1_000 }) {
      client, _ in
      let token = isOperator ? operatorToken : "another"
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
    try await withOperators(services) { client, header in
      let answer = try client.request(
        "PUT", target: "/admin/cache?url=" + url, headers: header, body: [1])
      #expect(answer.status == 503 && answer["Retry-After"] == "1")
    }
  }

  @Test func `a client that expects 100-continue receives it`() async throws {
    try await withOperators(services) { client, _ in
      try client.send(
        HTTPClient.text(
          "PUT", target: "/admin/cache?url=" + url,
          headers: ["Authorization": "Bearer " + operatorToken, "Expect": "100-continue"],
          bodyLength: 3))
      try client.expectContinue()
      try client.send(bytes: [1, 2, 3])
      #expect(try client.readAnswer().status == 201)
    }
    #expect(services.put.withLock { $0.first?.bytes } == [1, 2, 3])
  }
}
