// PrefetchRequestTests: tests of prefetch requests: parsing of lists, and refusals.

import Model
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct PrefetchRequestTests {
  private let token = "correct-horse-battery"
  private let services = TestServices()

  private func post(
    _ body: String, _ query: String = "", presets: [String: String] = [:]
  ) async throws -> (answer: HTTPAnswer, lines: [PrefetchLine]) {
    try await withServer(
      TestProvider(), services: services,
      configure: {
        $0.operatorTokens = [token]; $0.presets = presets
      }
    ) { server in
      let answer = try HTTPClient(port: server.port).request(
        "POST", "/admin/prefetch" + query, headers: ["Authorization": "Bearer " + token],
        body: Array(body.utf8))
      return (answer, services.lists.withLock { $0["1"] ?? [] })
    }
  }

  @Test func `a line is a URL or a query, bare or in JSON, and a bad one spoils no other`()
    async throws
  {
    let (answer, lines) = try await post(
      """
      https://h/a.jpg
      "https://h/b.jpg?x=1&y=2"

      # a comment
      /image?url=https%3A%2F%2Fh%2Fc.jpg&w=300
      "url=https%3A%2F%2Fh%2Fd.jpg&scale=0.5"
      {"url": "https://h/e.jpg", "w": 300, "fit": "cover", "enlarge": true}\r
      {"url": 
      ftp://h/f.jpg
      https://h/g.jpg
      """)
    #expect(answer.status == 202)
    #expect(answer.text.contains("\"id\" : \"1\""))
    #expect(answer.text.contains("\"total\" : 8"))
    #expect(lines.map(\.number) == [1, 2, 5, 6, 7, 8, 9, 10])
    let keys = lines.map { try? $0.request.get().key.text }
    #expect(keys[0] == "https://h/a.jpg " + Transform().canonicalText)
    #expect(keys[1]?.hasPrefix("https://h/b.jpg?x=1&y=2 ") == true)
    #expect(try lines[2].request.get().transform.width == 300)
    #expect(try lines[3].request.get().transform.scale == 0.5)
    #expect(try lines[4].request.get().transform.enlarge)
    #expect(keys[5] == nil && keys[6] == nil && keys[7] != nil)
  }

  @Test func `a list is taken times the presets`() async throws {
    let (answer, lines) = try await post(
      "https://h/a.jpg\nhttps://h/b.jpg", "?preset=small&preset=large",
      presets: ["small": "w=10", "large": "w=1000&format=webp"])
    #expect(answer.status == 202)
    #expect(try lines.map { try $0.request.get().transform.width } == [10, 1_000, 10, 1_000])
  }

  @Test func `a preset that is not there is refused by name`() async throws {
    let (answer, _) = try await post("https://h/a.jpg", "?preset=huge", presets: ["small": "w=10"])
    #expect(answer.status == 400)
    #expect(answer.text.contains("preset='huge' is not allowed: one of small"))
  }

  @Test func `a body that is too long is refused, and the connection goes on`() async throws {
    try await withServer(
      TestProvider(), services: services, configure: { $0.operatorTokens = [token] }
    ) { server in
      let client = try HTTPClient(port: server.port)
      let answer = try client.request(
        "POST", "/admin/prefetch", headers: ["Authorization": "Bearer " + token],
        body: [UInt8](repeating: 0x0a, count: PrefetchesEndpoint.maximumListLength + 1))
      #expect(answer.status == 413)
      #expect(answer.text.contains("\"code\":\"body_too_large\""))
      #expect(try client.get("/stats").status == 200)
    }
  }

  @Test func `too many lines are refused`() async throws {
    let (answer, _) = try await post(String(repeating: "x\n", count: PrefetchLine.most + 1))
    #expect(answer.status == 413)
    #expect(answer.text.contains("\"code\":\"too_many_lines\""))
  }

  @Test func `a list may take longer to come than a header`() async throws {
    try await withServer(
      TestProvider(), services: services,
      configure: {
        $0.operatorTokens = [token]
        $0.headerTimeout = .milliseconds(200)
      }
    ) { server in
      let client = try HTTPClient(port: server.port)
      let body = "https://h/a.jpg\nhttps://h/b.jpg"
      try client.send(
        HTTPClient.text(
          "POST", "/admin/prefetch", headers: ["Authorization": "Bearer " + token],
          bodyLength: body.utf8.count))
      try client.send(String(body.prefix(5)))
      // A connection that is as old and sends nothing shows that the header's time is over.
      try HTTPClient(port: server.port).waitForClose()
      try client.send(String(body.dropFirst(5)))
      #expect(try client.readAnswer().status == 202)
    }
  }

  @Test func `a stranger's body is not kept`() async throws {
    try await withServer(
      TestProvider(), services: services, configure: { $0.operatorTokens = [token] }
    ) { server in
      let client = try HTTPClient(port: server.port)
      let answer = try client.request(
        "POST", "/admin/prefetch", body: [UInt8](repeating: 0x0a, count: 1_000))
      #expect(answer.status == 401)
      try client.send(HTTPClient.text("POST", "/admin/prefetch", bodyLength: 1 << 20))
      // The answer comes before the body, or is lost where the connection is reset first.
      try? client.send(bytes: [UInt8](repeating: 0x0a, count: 1 << 20))
      if let answer = try? client.readAnswer() { #expect(answer.status == 401) }
      #expect(throws: HTTPClientError.self) { try client.request("GET", "/stats") }
    }
  }
}
