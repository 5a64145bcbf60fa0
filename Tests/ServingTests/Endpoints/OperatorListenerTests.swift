// OperatorListenerTests: each listener's endpoints and tokens; a flood of one spares the other.

@testable import Core
import Glibc
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct OperatorListenerTests {
  private static let methods = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"]
  private static let scopes: [Set<OperatorScope>] = [
    [.read], [.purge], [.write], [.read, .write], [.read, .purge, .write],
  ]

  private let operators = scopes.enumerated().map { index, scopes in
    Operator(name: "operator-\(index)", token: "the-token-number-\(index)", scopes: scopes)
  }

  private func withListeners(
    configure: (inout ServerConfiguration) -> Void = { _ in },
    body: (Server, Int) async throws -> Void
  ) async throws {
    try await withServer {
      $0.operators = operators
      $0.operatorAddress = ListenAddress("0")
      configure(&$0)
    } body: { server in
      try await body(server, try #require(server.operatorPort))
    }
  }

  /// The status that access alone decides; `nil` if the endpoint itself answers.
  private func refusal(
    of endpoint: (any Endpoint)?, method: String, as found: Operator?
  ) -> Int? {
    guard let endpoint else { return 404 }
    let parsed = Method(method)
    if endpoint.access == .operators, found == nil { return 401 }
    guard endpoint.methods.contains(parsed) else { return 405 }
    guard endpoint.access == .operators, let found else { return nil }
    return found.scopes.contains(endpoint.scope(for: parsed)) ? nil : 403
  }

  @Test func `listener, method and scope decide alike for each endpoint`() async throws {
    try await withListeners { server, operatorPort in
      let paths = EndpointTable.everyone.endpoints.map(\.samplePath) + ["/nowhere"]
      var outcomes: [Int: Int] = [:]
      for (port, table) in [
        (server.port, EndpointTable.clients), (operatorPort, EndpointTable.operators),
      ] {
        for path in paths {
          for method in Self.methods {
            for found in [nil] + operators.map(Optional.some) {
              let client = try HTTPClient(port: port)
              // Without a token, another field.
              let headers: KeyValuePairs = [
                found == nil ? "X-Nothing" : "Authorization": "Bearer " + (found?.token ?? "")
              ]
              let answer = try client.request(method, target: path, headers: headers)
              let expected = refusal(
                of: table.find(path)?.endpoint, method: method, as: found)
              let text = "\(method) \(path) at \(port) as \(found?.name ?? "nobody")"
              if let expected {
                #expect(answer.status == expected, "\(text)")
              } else {
                // 400 and 404 are the endpoint's own: a missing parameter, an absent item.
                #expect(![401, 403, 405, 429].contains(answer.status), "\(text)")
              }
              outcomes[expected ?? 0, default: 0] += 1
            }
          }
        }
      }
      // Each outcome was seen.
      #expect(Set(outcomes.keys) == [0, 401, 403, 404, 405])
    }
  }

  @Test func `each operators' endpoint asks for the scope that the documents name`() {
    let expected: [String: [String: OperatorScope]] = [
      "/admin/cache": ["GET": .read, "PUT": .write, "DELETE": .purge],
      "/admin/cache/clear": ["POST": .purge], "/admin/cache/clean": ["POST": .purge],
      "/admin/failed": ["GET": .read, "DELETE": .purge], "/admin/cancel": ["POST": .write],
      "/admin/doctor": ["POST": .write],
      "/admin/explain": ["GET": .read],
      "/admin/downloads": ["GET": .read], "/admin/pause": ["POST": .write],
      "/admin/resume": ["POST": .write], "/admin/prefetch": ["GET": .read, "POST": .write],
      "/admin/prefetch/x": ["GET": .read, "DELETE": .write],
    ]
    var found: [String: [String: OperatorScope]] = [:]
    for endpoint in EndpointTable.operators.endpoints where endpoint.access == .operators {
      for method in endpoint.methods where method != .head {
        found[endpoint.samplePath, default: [:]][method.rawValue] = endpoint.scope(for: method)
        if method == .get { #expect(endpoint.scope(for: .head) == endpoint.scope(for: .get)) }
      }
    }
    #expect(found == expected)
  }

  @Test func `a token without the scope is told which one it lacks`() async throws {
    try await withListeners { _, port in
      let answer = try HTTPClient(port: port).request(
        "DELETE", target: "/admin/failed", headers: ["Authorization": "Bearer the-token-number-0"])
      #expect(answer.status == 403 && answer.text.contains("\"code\":\"insufficient_scope\""))
      #expect(answer.text.contains("'purge'"))
      #expect(
        answer["WWW-Authenticate"] == "Bearer error=\"insufficient_scope\", scope=\"purge\"")
    }
  }

  @Test func `a body is not kept for a token without the scope`() async throws {
    let services = TestServices()
    try await withServer(services: services) {
      $0.operators = operators
    } body: { server in
      let target = "/admin/cache?url=https%3A%2F%2Fh%2Fa"
      for found in operators {
        let answer = try HTTPClient(port: server.port).request(
          "PUT", target: target, headers: ["Authorization": "Bearer " + found.token],
          body: Array(repeating: 1, count: 30_000))
        #expect(answer.status == (found.scopes.contains(.write) ? 201 : 403), "\(found)")
      }
      #expect(services.put.withLock { $0.map(\.bytes.count) } == [30_000, 30_000, 30_000])
    }
  }

  @Test func `beside a listener for operators, clients see the status alone`() async throws {
    try await withListeners { server, port in
      let client = try HTTPClient(port: server.port)
      let own = try HTTPClient(port: port)
      let answer = try client.get("/stats")
      #expect(answer.status == 200)
      #expect(answer.text == "{\n  \"status\" : \"serving\"\n}\n")
      #expect(try own.get("/stats").text.contains("\"requests\""))
      // Also with a token, and for images the other way round
      let header: KeyValuePairs = ["Authorization": "Bearer the-token-number-4"]
      #expect(try client.get("/stats", headers: header).text == answer.text)
      #expect(try own.get(imageTarget, headers: header).status == 404)
      // When the server is about to stop
      server.announceStop()
      // Then
      let announced = try client.get("/stats")
      #expect(announced.status == 503)
      #expect(announced.text == "{\n  \"status\" : \"draining\"\n}\n")
      #expect(try own.get("/stats").status == 503)
    }
  }

  @Test func `liveness and readiness are apart, on both listeners and over all of a stop`()
    async throws
  {
    try await withListeners { server, port in
      let clients = [try HTTPClient(port: server.port), try HTTPClient(port: port)]
      for client in clients {
        for check in ["/livez", "/readyz"] {
          let answer = try client.get(check)
          #expect(answer.status == 200 && answer.text == "{\n  \"status\" : \"serving\"\n}\n")
          #expect(answer["Cache-Control"] == "no-store")
          #expect(try client.request("HEAD", target: check).status == 200)
        }
      }
      // When the server is about to stop
      server.announceStop()
      // Then it lives, and wants no new requests
      for client in clients {
        let alive = try client.get("/livez")
        #expect(alive.status == 200 && alive.text.contains("draining"))
        let ready = try client.get("/readyz")
        #expect(ready.status == 503 && ready.text == "{\n  \"status\" : \"draining\"\n}\n")
      }
    }
  }

  @Test func `images in memory are not served by the operators' listener`() async throws {
    let provider = TestProvider()
    provider.keep(makeVariant(try makeRequest().key))
    try await withServer(
      provider, configure: { $0.operatorAddress = ListenAddress("127.0.0.1:0") }
    ) { server in
      #expect(try HTTPClient(port: server.port).get(imageTarget).status == 200)
      let own = try HTTPClient(port: try #require(server.operatorPort))
      #expect(try own.get(imageTarget).status == 404)
    }
  }

  @Test func `busy clients on every connection do not keep operators out`() async throws {
    try await withListeners(configure: {
      $0.connectionLimit = 32
      $0.workers = 1
      $0.headerTimeout = .seconds(3_600)
    }) { server, port in
      // Given a request whose body does not arrive on every connection, and more clients that wait
      let busy = try (0..<32).map { _ in
        let client = try HTTPClient(port: server.port)
        try client.occupy()
        return client
      }
      let crowd = try (0..<64).map { _ in try HTTPClient(port: server.port) }
      try await eventually { server.figures.connections == 32 }
      // Then clients get nothing
      let late = try HTTPClient(port: server.port, timeout: 1)
      try late.send(HTTPClient.text("GET", target: "/stats"))
      #expect(throws: HTTPClientError.timedOut) { try late.readAnswer() }
      // And operators are served on new connections
      for _ in 0..<5 {
        let own = try HTTPClient(port: port)
        let answer = try own.get("/stats")
        #expect(answer.status == 200 && answer.text.contains("\"connections\" : 32"))
        let header: KeyValuePairs = ["Authorization": "Bearer the-token-number-4"]
        #expect(try own.get("/admin/failed", headers: header).status == 200)
      }
      withExtendedLifetime((busy, crowd)) {}
    }
  }

  @Test func `requests that wait in every place do not keep operators out`() async throws {
    let work = CancellableProvider()
    try await withServer(work.provider) {
      $0.operators = operators
      $0.operatorAddress = ListenAddress("0")
      $0.maximumActiveRequests = 2
    } body: { server in
      let waiting = try (1...2).map { try server.ask(imageTarget + "&w=\($0)") }
      try await eventually { work.provider.asked.value == 2 }
      #expect(try HTTPClient(port: server.port).get(imageTarget + "&w=9").status == 503)
      // A prefetch counts as a request that waits.
      let own = try HTTPClient(port: try #require(server.operatorPort))
      let answer = try own.request(
        "POST", target: "/admin/prefetch", headers: ["Authorization": "Bearer the-token-number-4"],
        body: Array("https://example.org/a.png".utf8))
      #expect(answer.status == 202)
      withExtendedLifetime(waiting) {}
    }
  }

  @Test func `a stop ends the clients' listener first, and the operators' last`() async throws {
    let gate = Gate()
    let provider = TestProvider { request throws(ImageError) in
      await gate.pass()
      return makeDelivery(makeVariant(request.key, body: [1]))
    }
    let services = TestServices()
    try await withServer(provider, services: services) {
      $0.graceTime = .seconds(20)
      $0.operators = operators
      $0.operatorAddress = ListenAddress("0")
    } body: { server in
      // Given a running request, an operator's open connection and one with events
      let running = try server.ask()
      try await eventually { provider.asked.value == 1 }
      let port = server.port
      let ownPort = try #require(server.operatorPort)
      let header: KeyValuePairs = [
        "Authorization": "Bearer the-token-number-4", "Accept": "text/event-stream",
      ]
      let events = try HTTPClient(port: ownPort)
      try events.send(HTTPClient.text("GET", target: "/admin/downloads", headers: header))
      try await eventually { services.observerCount == 1 }
      // When
      async let stopped: Void = server.stop()
      try await eventually { (try? HTTPClient(port: port)) == nil }
      // Then operators still get in, over new connections, again and again
      let own = try HTTPClient(port: ownPort)
      for _ in 0..<3 {
        let stats = try own.get("/stats")
        #expect(stats.status == 503 && stats.text.contains("\"draining\""))
        #expect(stats["Connection"] != "close")
      }
      let refused = try HTTPClient(port: ownPort).request(
        "POST", target: "/admin/prefetch", headers: ["Authorization": "Bearer the-token-number-4"],
        body: Array("https://example.org/a.png".utf8))
      #expect(refused.status == 503)
      #expect(try events.readAnswer().status == 200)
      // When the last request ends
      gate.open()
      #expect(try running.readAnswer().status == 200)
      await stopped
      // Then
      try own.waitForClose()
      #expect(throws: HTTPClientError.cannotConnect(errno: ECONNREFUSED)) {
        try HTTPClient(port: ownPort)
      }
    }
  }

  @Test func `pages of any origin may not read the operators' listener`() async throws {
    for (origins, isAllowed) in [(["*"], false), (["https://ops.example"], true)] {
      try await withListeners(configure: { $0.corsOrigins = origins }) { server, port in
        let header: KeyValuePairs = ["Origin": "https://ops.example"]
        let own = try HTTPClient(port: port).get("/stats", headers: header)
        #expect((own["Access-Control-Allow-Origin"] != nil) == isAllowed, "\(origins)")
        let shared = try HTTPClient(port: server.port).get("/stats", headers: header)
        #expect(shared["Access-Control-Allow-Origin"] != nil)
      }
    }
  }

  @Test func `an occupied address is a start error, and nothing is left listening`() throws {
    let other = try Listener(
      ListeningSocket.all(on: [.network(host: "127.0.0.1", port: 0)], mode: 0o660))
    defer { other.stop() }
    var configuration = ServerConfiguration()
    configuration.port = 0
    configuration.operatorAddress = ListenAddress(host: "127.0.0.1", port: other.port)
    let server = Server(
      configuration: configuration, provider: TestProvider(),
      services: AdminServices(TestServices()), stats: makeStats, log: Log(level: .error))
    #expect {
      try server.start()
    } throws: { error in
      "\(error)" == "cannot listen on 127.0.0.1:\(other.port): Address already in use (98)"
    }
    #expect(server.port == 0 && server.operatorPort == nil)
  }
}
