// AdminEndpointTests: tests of the admin endpoints, operation keys and negatively cached failures.

import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct AdminEndpointTests {
  private let services = TestServices()

  @Test func `a slow listing does not block other requests of its event loop`() async throws {
    try await withServer(services: services) {
      $0.operatorTokens = [operatorToken]
      $0.workers = 1
    } body: { server in
      let (client, other) = (try HTTPClient(port: server.port), try HTTPClient(port: server.port))
      func ask(_ method: String, path: String) throws {
        try client.send(HTTPClient.text(method, target: path, headers: operatorHeader))
        #expect(try other.get("/stats").status == 200)
      }
      try services.failed.withLock { _ in try ask("GET", path: "/admin/failed") }
      #expect(try client.readAnswer().status == 200)
      try services.failed.withLock { _ in try ask("DELETE", path: "/admin/failed") }
      #expect(try client.readAnswer().status == 200)
      try services.listed.withLock { _ in try ask("GET", path: "/admin/downloads") }
      #expect(try client.readAnswer().status == 200)
      try services.statuses.withLock { _ in try ask("GET", path: "/admin/prefetch") }
      #expect(try client.readAnswer().status == 200)
    }
  }

  @Test func `admin requests are answered while the server is overloaded`()
    async throws
  {
    let work = CancellableProvider()
    try await withServer(work.provider, services: services) {
      $0.operatorTokens = [operatorToken]
      $0.maximumActiveRequests = 1
    } body: { server in
      let waiting = try server.ask()
      try await eventually { work.provider.asked.value == 1 }
      let client = try HTTPClient(port: server.port)
      for path in ["/admin/downloads", "/admin/failed", "/admin/prefetch"] {
        #expect(try client.get(path, headers: operatorHeader).status == 200)
      }
      let purge = try client.request(
        "DELETE", target: "/admin/cache?url=https://h/a", headers: operatorHeader)
      #expect(purge.status == 200)
      #expect(try client.get(imageTarget).status == 503)
    }
  }

  // MARK: Operation keys

  private let key: KeyValuePairs = ["X-Operation-Key": "row 7"]

  @Test func `a later request with the same operation key replaces the running one`()
    async throws
  {
    let work = CancellableProvider()
    try await withServer(work.provider) { server in
      let older = try server.ask(imageTarget + "&w=1", headers: key)
      try await eventually { work.provider.asked.value == 1 }
      let newer = try server.ask(imageTarget + "&w=2", headers: key)
      let answer = try older.readAnswer()
      #expect(answer.status == 409)
      #expect(answer.text.contains("\"code\":\"superseded\""))
      try await eventually { work.cancelled.value == 1 }
      try await eventually { server.figures.active == 1 }
    }
  }

  @Test func `requests with other operation keys or none are not replaced`() async throws {
    let work = CancellableProvider()
    try await withServer(work.provider) { server in
      let clients = try (0..<3).map { _ in try HTTPClient(port: server.port) }
      let long = String(repeating: "k", count: 129)
      let headers: [KeyValuePairs<String, String>] = [
        key, ["X-Operation-Key": "row 8"], [:], ["X-Operation-Key": long],
      ]
      for (client, header) in zip(clients, headers) {
        try client.send(HTTPClient.text("GET", target: imageTarget, headers: header))
      }
      try await eventually { server.figures.active == 3 }
      let further = try server.ask(headers: ["X-Operation-Key": long])
      try await eventually { server.figures.active == 4 }
      #expect(work.cancelled.value == 0)
    }
  }

  @Test(arguments: [
    ("198.51.100.7", "198.51.100.7", true), ("198.51.100.7", "198.51.100.8", false),
    ("unknown", "unknown", false),
  ])
  func `behind a proxy, only the same client replaces a request`(
    older: String, newer: String, isReplaced: Bool
  ) async throws {
    let work = CancellableProvider()
    let proxy = try #require(CIDR("127.0.0.0/8"))
    try await withServer(work.provider, configure: { $0.trustedProxies.networks = [proxy] }) {
      server in
      let clients = try [older, newer].enumerated().map { index, address in
        let client = try HTTPClient(port: server.port)
        try client.send(
          HTTPClient.text(
            "GET", target: imageTarget + "&w=\(index + 1)",
            headers: ["X-Operation-Key": "row 7", "X-Forwarded-For": address]))
        // The older one has to be there before the newer one.
        try blockUntil("it waits") { work.provider.asked.value == index + 1 }
        return client
      }
      if isReplaced {
        #expect(try clients[0].readAnswer().status == 409)
      } else {
        try await eventually { server.figures.active == 2 }
        #expect(work.cancelled.value == 0)
      }
      withExtendedLifetime(clients) {}
    }
  }

  @Test func `a memory hit also replaces the running request of its operation key`() async throws {
    let work = CancellableProvider()
    work.provider.keep(makeVariant(try makeRequest().key))
    try await withServer(work.provider) { server in
      let older = try server.ask(imageTarget + "&w=1", headers: key)
      try await eventually { work.provider.asked.value == 1 }
      let request = try makeRequest()
      work.provider.atHand.withLock {
        $0[request.key] = makeDelivery(makeVariant(request.key, body: [1]))
      }
      let newer = try HTTPClient(port: server.port)
      #expect(try newer.get(imageTarget, headers: key).status == 200)
      #expect(try older.readAnswer().status == 409)
    }
  }

  @Test func `requests that race for an operation key leave no state`() async throws {
    let work = CancellableProvider()
    let provider = TestProvider { request throws(ImageError) in
      guard request.source.path != "/hangs" else {
        return try await work.provider.variant(for: request)
      }
      await Task.yield()
      return makeDelivery(makeVariant(request.key, body: [1]))
    }
    try await withServer(provider, configure: { $0.workers = 4 }) { server in
      let clients = try (0..<16).map { _ in try HTTPClient(port: server.port) }
      for _ in 0..<500 {
        for client in clients {
          try client.send(HTTPClient.text("GET", target: imageTarget, headers: key))
        }
        for client in clients { #expect([200, 409].contains(try client.readAnswer().status)) }
      }
      // Each connection is still watched for its disconnect.
      for client in clients {
        try client.send(HTTPClient.text("GET", target: "/image?url=https://h/hangs"))
      }
      try await eventually { work.provider.asked.value == 16 }
      for client in clients { client.close() }
      try await eventually { work.cancelled.value == 16 }
    }
  }

  // MARK: Remembered failures

  @Test
  func
    `a remembered failure is cacheable for its remaining time and reported as a hit when repeated`()
    async throws
  {
    let repeated = Counter()
    let provider = TestProvider { _ throws(ImageError) in
      repeated.add()
      throw .remembered(
        .sourceNotFound(status: 404), seconds: 600, isRepeated: repeated.value > 1)
    }
    try await withClient(provider) { client in
      let first = try client.get(imageTarget)
      #expect(first.status == 404)
      #expect(first["Cache-Control"] == "public, max-age=600")
      #expect(first["Cache-Status"] == nil)
      let second = try client.get(imageTarget)
      #expect(second.text.contains("\"code\":\"source_not_found\""))
      #expect(second["Cache-Status"] == "pictor; hit; detail=failed-url")
    }
  }
}
