// OperatorTokensTests: the limit of wrong tokens, and operators' names in the log, over a socket.

@testable import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct OperatorTokensTests {
  private let token = operatorToken

  private func withProxy(body: (Server) async throws -> Void) async throws {
    try await withServer(
      configure: {
        $0.operatorTokens = [token]
        $0.trustedProxies.networks = [CIDR("127.0.0.0/8")].compactMap { $0 }
      }, body: body)
  }

  /// Sends a token from an address behind a trusted proxy.
  private func ask(
    _ server: Server, from address: String, token: String?, method: String = "GET",
    target: String = "/admin/failed", body: [UInt8]? = nil
  ) throws -> HTTPAnswer {
    let client = try HTTPClient(port: server.port)
    guard let token else {
      return try client.request(
        method, target: target, headers: ["X-Forwarded-For": address], body: body)
    }
    return try client.request(
      method, target: target,
      headers: ["X-Forwarded-For": address, "Authorization": "Bearer " + token], body: body)
  }

  @Test(arguments: [
    ("198.51.100.1", "198.51.100.1", "198.51.100.2"),
    ("2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"),
  ])
  func `ten wrong tokens are refused, further ones of the network limited, and a right one taken`(
    guesser: String, neighbour: String, other: String
  ) async throws {
    try await withProxy { server in
      // Given
      for number in 0..<10 {
        #expect(try ask(server, from: guesser, token: "guess-\(number)").status == 401)
      }
      // Then a guess is limited, and the right token is taken
      let refused = try ask(server, from: neighbour, token: "guess")
      #expect(refused.status == 429 && refused.text.contains("\"code\":\"rate_limited\""))
      let seconds = try #require(refused["Retry-After"].flatMap { Int($0) })
      #expect((1...60).contains(seconds))
      #expect(refused["WWW-Authenticate"] == nil)
      #expect(try ask(server, from: neighbour, token: token).status == 200)
      // And other addresses, requests without a token and other paths are not affected
      #expect(try ask(server, from: other, token: token).status == 200)
      #expect(try ask(server, from: other, token: "guess").status == 401)
      #expect(try ask(server, from: guesser, token: nil).status == 401)
      let open = try HTTPClient(port: server.port).get(
        "/stats", headers: ["X-Forwarded-For": guesser, "Authorization": "Bearer guess"])
      #expect(open.status == 200)
      // And the figures count the refusals, and no request without a token
      #expect(server.figures.tokensRefused == ["wrong": 11, "limited": 1])
    }
  }

  @Test func `wrong tokens count only at the listener that has the endpoints`() async throws {
    try await withServer {
      $0.operatorTokens = [token]
      $0.operatorAddress = ListenAddress("0")
    } body: { server in
      let own = try #require(server.operatorPort)
      let wrong: KeyValuePairs = ["Authorization": "Bearer guess"]
      for _ in 0..<20 {
        #expect(
          try HTTPClient(port: server.port).get("/admin/failed", headers: wrong).status == 404)
      }
      for _ in 0..<10 {
        #expect(try HTTPClient(port: own).get("/admin/failed", headers: wrong).status == 401)
      }
      #expect(try HTTPClient(port: own).get("/admin/failed", headers: wrong).status == 429)
    }
  }

  @Test func `a wrong token counts once, with and without a body, and with any method`()
    async throws
  {
    let requests: [(method: String, target: String, body: Int?)] = [
      ("GET", "/admin/failed", nil), ("DELETE", "/admin/failed", nil),
      ("POST", "/admin/prefetch", 10), ("PUT", "/admin/cache?url=https%3A%2F%2Fh%2Fa", 40_000),
      ("PUT", "/admin/cache?url=https%3A%2F%2Fh%2Fa", 70_000), ("PATCH", "/admin/failed", nil),
    ]
    for (method, target, body) in requests {
      try await withProxy { server in
        func status() throws -> Int {
          try ask(
            server, from: "198.51.100.1", token: "guess", method: method, target: target,
            body: body.map { Array(repeating: 1, count: $0) }
          ).status
        }
        let statuses = try (1...11).map { _ in try status() }
        #expect(statuses == Array(repeating: 401, count: 10) + [429], "\(method) \(target)")
      }
    }
  }

  @Test func `a wrong token on a reused connection counts for each request`() async throws {
    try await withProxy { server in
      let client = try HTTPClient(port: server.port)
      func status(_ token: String) throws -> Int {
        try client.get("/admin/failed", headers: ["Authorization": "Bearer " + token]).status
      }
      #expect(try status(token) == 200)
      for _ in 0..<10 { #expect(try status("guess") == 401) }
      #expect(try status("guess") == 429)
    }
  }

  @Test func `the log names the operator of each request, and never a token`() async throws {
    let file = try LogFile()
    try await withClient(log: file.log()) {
      $0.operators = [
        Operator(name: "deploy", token: "the-deploy-token-1", scopes: [.purge]),
        Operator(name: "dashboard", token: "the-reading-token-2", scopes: [.read]),
      ]
    } body: { client in
      for token in ["the-deploy-token-1", "the-reading-token-2", "the-wrong-token-3"] {
        _ = try client.get("/admin/failed", headers: ["Authorization": "Bearer " + token])
      }
      // A later request of the same connection has no operator.
      _ = try client.get("/nowhere")
    }
    let text = try file.lines()
    let lines = text.filter { $0.contains("\"message\":\"request\"") }
    try #require(lines.count == 4, "\(text)")
    #expect(lines[0].contains("\"status\":403") && lines[0].contains("\"operator\":\"deploy\""))
    #expect(lines[1].contains("\"status\":200") && lines[1].contains("\"operator\":\"dashboard\""))
    #expect(lines[2].contains("\"status\":401") && !lines[2].contains("\"operator\""))
    #expect(lines[3].contains("\"status\":404") && !lines[3].contains("\"operator\""))
    #expect(!text.contains { $0.contains("-token-") })
  }
}
