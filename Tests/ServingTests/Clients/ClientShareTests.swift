// ClientShareTests: greedy clients behind a trusted proxy: 429 for them, images for others.

import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct ClientShareTests {
  private let greedy: KeyValuePairs = ["X-Forwarded-For": "198.51.100.7"]
  private let modest: KeyValuePairs = ["X-Forwarded-For": "198.51.100.8"]

  /// Runs a server whose tests are its trusted proxy.
  private func withProxiedServer(
    _ provider: any ImageProvider, configure: (inout ServerConfiguration) -> Void,
    body: (Server) async throws -> Void
  ) async throws {
    let proxy = try #require(CIDR("127.0.0.0/8"))
    try await withServer(
      provider,
      configure: {
        $0.trustedProxies.networks = [proxy]
        configure(&$0)
      }, body: body)
  }

  private func expectLimited(_ answer: HTTPAnswer) {
    #expect(answer.status == 429)
    #expect(answer.text.contains("\"code\":\"rate_limited\""))
    #expect(answer["Cache-Control"] == "no-store")
    #expect((answer["Retry-After"].flatMap { Int($0) } ?? 0) >= 1)
  }

  @Test func `a client's waiting requests leave places to others`() async throws {
    let work = CancellableProvider()
    work.provider.keep(makeVariant(try makeRequest("https://h/hit").key))
    try await withProxiedServer(work.provider) {
      $0.maximumActiveRequests = 8
    } body: { server in
      // Given two requests of one client, a quarter of all
      let waiting = try (0..<2).map { _ in try server.ask(headers: greedy) }
      try await eventually { work.provider.asked.value == 2 }
      // Then it has no third one
      let client = try HTTPClient(port: server.port)
      let refused = try client.get(imageTarget, headers: greedy)
      expectLimited(refused)
      #expect(refused["Retry-After"] == "1")
      #expect(server.figures.rateLimited == ["active_requests": 1])
      // But what is in memory
      #expect(try client.get("/image?url=https://h/hit", headers: greedy).status == 200)
      // And another one has a place, and so does the proxy itself
      for headers in [modest, [:]] {
        let next = work.provider.asked.value + 1
        let other = try server.ask(headers: headers)
        try await eventually { work.provider.asked.value == next }
        other.close()
      }
      // When one of the two ends, another way than by an image
      waiting[0].close()
      try await eventually { server.figures.clientsGone == 3 }
      let next = work.provider.asked.value + 1
      try client.send(HTTPClient.text("GET", target: imageTarget, headers: greedy))
      try await eventually { work.provider.asked.value == next }
      withExtendedLifetime(waiting) {}
    }
  }

  @Test func `a share is free again after an image, an error and a deadline`() async throws {
    let provider = TestProvider { request throws(ImageError) in
      switch request.source.path {
      case "/image": return makeDelivery(makeVariant(request.key, body: [1]))
      case "/error": throw .sourceNotFound(status: 404)
      default:
        while !Task.isCancelled { try? await Task.sleep(for: .seconds(3_600)) }
        throw .cancelled
      }
    }
    try await withProxiedServer(provider) {
      $0.maximumActiveRequestsPerClient = 1
      $0.requestTimeout = .milliseconds(500)
    } body: { server in
      let client = try HTTPClient(port: server.port)
      // On a busy machine the deadline may be the first to end any of them.
      for (path, statuses) in [("image", [200, 504]), ("error", [404, 504]), ("late", [504])] {
        for _ in 0..<2 {
          let answer = try client.get("/image?url=https://h/\(path)", headers: greedy)
          #expect(statuses.contains(answer.status), "\(path)")
        }
      }
      #expect(server.figures.rateLimited == [:])
    }
  }

  @Test(arguments: [
    "/image?url=https://h/a", "/image?url=https://h/fails", "/info?url=https://h/a",
  ])
  func `a client whose imaging time is used up gets what is cached, and others get all`(
    target: String
  ) async throws {
    let provider = TestProvider { request throws(ImageError) in
      // A request that joins a flight of others costs the client nothing.
      if request.source.path != "/joined" { ImagingAccounts.current?.charge(.seconds(40)) }
      if request.source.path == "/fails" { throw .undecodable(detail: "") }
      return makeDelivery(makeVariant(request.key, body: [1]))
    }
    provider.keep(makeVariant(try makeRequest("https://h/hit").key))
    try await withProxiedServer(
      provider, configure: { $0.imagingTimePerClient = .seconds(30) }
    ) { server in
      let client = try HTTPClient(port: server.port)
      for _ in 0..<3 {
        #expect(try client.get("/image?url=https://h/joined", headers: greedy).status == 200)
      }
      // When one costs 40 s, whatever its result
      #expect(try client.get(target, headers: greedy).status != 429)
      // Then
      let refused = try client.get(target, headers: greedy)
      expectLimited(refused)
      #expect((1...60).contains(Int(refused["Retry-After"] ?? "") ?? 0))
      #expect(server.figures.rateLimited == ["imaging_time": 1])
      #expect(try client.get("/image?url=https://h/hit", headers: greedy).status == 200)
      #expect(try client.get(target, headers: modest).status != 429)
      for _ in 0..<3 { #expect(try client.get(target).status != 429) }
    }
  }

  @Test func `a client whose two fields disagree is limited as others like it are`() async throws {
    let provider = TestProvider.making([1])
    try await withProxiedServer(provider, configure: { $0.requestsPerSecond = 1 }) { server in
      let client = try HTTPClient(port: server.port)
      // Given a client that adds a field of its own, each time another one
      let statuses = try (1...11).map { number in
        try client.get(
          imageTarget,
          headers: ["X-Forwarded-For": "198.51.100.7", "Forwarded": "for=6.6.6.\(number)"]
        ).status
      }
      // Then it has the limits of one client, though its proxy has none
      #expect(statuses == Array(repeating: 200, count: 10) + [429])
      #expect(try client.get(imageTarget, headers: modest).status == 200)
      #expect(try client.get(imageTarget).status == 200)
    }
  }

  @Test func `work that ends after its client has left is charged, too`() async throws {
    let gate = Gate()
    let provider = TestProvider { _ throws(ImageError) in
      await gate.pass()
      ImagingAccounts.current?.charge(.seconds(40))
      throw .cancelled
    }
    try await withProxiedServer(
      provider, configure: { $0.imagingTimePerClient = .seconds(30) }
    ) { server in
      // Given
      let leaving = try server.ask(headers: greedy)
      try await eventually { provider.asked.value == 1 }
      leaving.close()
      try await eventually { server.figures.clientsGone == 1 }
      // When
      gate.open()
      // Then
      let client = try HTTPClient(port: server.port)
      try await eventually {
        try client.get(imageTarget, headers: self.greedy).status == 429
      }
    }
  }

  @Test func `requests per second are counted, if it is set, but for operators and figures`()
    async throws
  {
    let provider = TestProvider()
    provider.keep(makeVariant(try makeRequest().key))
    for rate in [0, 1] {
      try await withProxiedServer(provider) {
        $0.requestsPerSecond = rate
        $0.operatorTokens = ["the-token-of-operators"]
      } body: { server in
        let client = try HTTPClient(port: server.port)
        // One more than a busy machine can send in the time that refills the budget.
        var answered = 0
        var refused: HTTPAnswer?
        for number in 0..<400 where refused == nil {
          let target = number % 2 == 0 ? imageTarget : "/nowhere"
          let answer = try client.get(target, headers: greedy)
          if answer.status == 429 { refused = answer } else { answered += 1 }
        }
        #expect((refused != nil) == (rate > 0))
        #expect(answered >= 10)
        refused.map(expectLimited)
        // Others are served, and operators.
        #expect(try client.get(imageTarget, headers: modest).status == 200)
        for _ in 0..<20 { #expect(try client.get("/stats").status == 200) }
        // So is a health check that comes through the same address.
        for check in ["/stats", "/metrics", "/livez", "/readyz"] {
          #expect(try client.get(check, headers: greedy).status == 200)
        }
        let operators = try client.get(
          "/admin/failed",
          headers: [
            "Authorization": "Bearer the-token-of-operators", "X-Forwarded-For": "198.51.100.7",
          ])
        #expect(operators.status == 200)
      }
    }
  }

  @Test func `beside a listener for operators, checks of health are not counted either`()
    async throws
  {
    try await withProxiedServer(TestProvider()) {
      $0.requestsPerSecond = 1
      $0.operatorAddress = ListenAddress("127.0.0.1:0")
    } body: { server in
      let client = try HTTPClient(port: server.port)
      for _ in 0..<400 where try client.get("/nowhere", headers: greedy).status != 429 {}
      for check in ["/stats", "/livez", "/readyz"] {
        for _ in 0..<40 { #expect(try client.get(check, headers: greedy).status == 200) }
      }
    }
  }

  @Test func `clients on the machine itself have no limits`() async throws {
    let work = CancellableProvider()
    try await withServer(work.provider) {
      $0.maximumActiveRequestsPerClient = 1
      $0.requestsPerSecond = 1
    } body: { server in
      let clients = try (0..<30).map { _ in try server.ask(headers: greedy) }
      try await eventually { work.provider.asked.value == 30 }
      withExtendedLifetime(clients) {}
    }
  }
}
