// PrefetchRequestTests: tests of prefetch requests: parsing of lists, and refusals.

import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct PrefetchRequestTests {
  private let services = TestServices()

  private func post(
    _ body: String, query: String = "", presets: [String: String] = [:]
  ) async throws -> (answer: HTTPAnswer, lines: [PrefetchLine]) {
    var answer: HTTPAnswer?
    try await withOperators(services, configure: { $0.presets = presets }) { client, header in
      answer = try client.request(
        "POST", target: "/admin/prefetch" + query, headers: header, body: Array(body.utf8))
    }
    return (try #require(answer), services.lists.withLock { $0["1"] ?? [] })
  }

  @Test
  func `a line is a URL or a query, and an invalid one does not affect others`()
    async throws
  {
    let (answer, lines) = try await post(
      """
      https://h/a.jpg
      https://h/b.jpg?x=1&y=2

      # a comment
      /image?url=https%3A%2F%2Fh%2Fc.jpg&w=300
      ?url=https%3A%2F%2Fh%2Fd.jpg&scale=0.5
      url=https%3A%2F%2Fh%2Fe.jpg&enlarge=1\r
      {"url": "https://h/e.jpg"}
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

  @Test func `a list is requested once for each preset`() async throws {
    let (answer, lines) = try await post(
      "https://h/a.jpg\nhttps://h/b.jpg", query: "?preset=small&preset=large",
      presets: ["small": "w=10", "large": "w=1000&format=webp"])
    #expect(answer.status == 202)
    #expect(try lines.map { try $0.request.get().transform.width } == [10, 1_000, 10, 1_000])
  }

  @Test func `an unknown preset is refused by name`() async throws {
    let (answer, _) = try await post(
      "https://h/a.jpg", query: "?preset=huge", presets: ["small": "w=10"])
    #expect(answer.status == 400)
    #expect(answer.text.contains("preset='huge' is not allowed: one of small"))
  }

  @Test func `a list over the limit is refused, and the connection stays usable`() async throws {
    try await withOperators(services) { client, header in
      let answer = try client.request(
        "POST", target: "/admin/prefetch", headers: header,
        body: [UInt8](repeating: 0x0a, count: PrefetchesEndpoint.maximumListLength + 1))
      #expect(answer.status == 413)
      #expect(answer.text.contains("\"code\":\"body_too_large\""))
      #expect(try client.get("/stats").status == 200)
    }
  }

  @Test func `a list with too many lines is refused`() async throws {
    let (answer, _) = try await post(String(repeating: "x\n", count: PrefetchLine.maximumCount + 1))
    #expect(answer.status == 413)
    #expect(answer.text.contains("\"code\":\"too_many_lines\""))
  }

  @Test func `a list may take longer to arrive than the header time-out`() async throws {
    try await withServer(services: services) {
      $0.operatorTokens = [operatorToken]
      $0.headerTimeout = .seconds(1)
    } body: { server in
      let client = try HTTPClient(port: server.port)
      let body = "https://h/a.jpg\nhttps://h/b.jpg"
      try client.send(
        HTTPClient.text(
          "POST", target: "/admin/prefetch", headers: operatorHeader,
          bodyLength: body.utf8.count))
      try client.send(String(body.prefix(5)))
      // An equally old connection without data shows that the header time-out has passed.
      try HTTPClient(port: server.port).waitForClose()
      try client.send(String(body.dropFirst(5)))
      #expect(try client.readAnswer().status == 202)
    }
  }

  @Test func `an unauthorized request body is not kept`() async throws {
    try await withOperators(services) { client, _ in
      let answer = try client.request(
        "POST", target: "/admin/prefetch", body: [UInt8](repeating: 0x0a, count: 1_000))
      #expect(answer.status == 401)
      try client.send(HTTPClient.text("POST", target: "/admin/prefetch", bodyLength: 1 << 20))
      // The response arrives before the body, or is lost if the connection is reset first.
      try? client.send(bytes: [UInt8](repeating: 0x0a, count: 1 << 20))
      if let answer = try? client.readAnswer() { #expect(answer.status == 401) }
      #expect(throws: HTTPClientError.self) { try client.request("GET", target: "/stats") }
    }
  }
}
