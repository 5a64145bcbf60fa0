// ProtocolTests: tests of malformed, slow and unusual requests, and of failing server starts.

import Core
import Glibc
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct ProtocolTests {
  @Test func `unknown paths, methods and parameters get the errors of the contract`() async throws {
    try await withClient { client in
      let nowhere = try client.get("/nowhere?x=%zz")
      #expect(nowhere.status == 404)
      #expect(nowhere.text.contains("\"code\":\"not_found\""))
      #expect(nowhere.text.contains("/nowhere"))
      for (method, path) in [
        ("DELETE", "/image?url=x"), ("POST", "/stats"), ("PROPFIND", "/image"),
      ] {
        let answer = try client.request(method, target: path)
        #expect(answer.status == 405)
        #expect(answer["Allow"] == "GET, HEAD, OPTIONS")
        #expect(answer.text.contains("\"code\":\"method_not_allowed\""))
      }
      let bad = try client.get("/image?url=https://h/a&fit=%22%0A")
      #expect(bad.status == 400)
      #expect(bad.text.contains(#""parameter":"fit""#))
      #expect(bad.text.contains(#"fit='\"\\u{a}' is not allowed"#))
      #expect(try client.get("/image?url=ftp://h/a").text.contains("\"invalid_url\""))
      #expect(try client.get("/image").text.contains("\"missing_parameter\""))
      #expect(try client.get("/image?url=https://h/a&x=1").text.contains("\"unknown_parameter\""))
      #expect(try client.get("/image?url=https://h/a").status == 404)
    }
  }

  @Test func `a request body is read and discarded up to a limit`() async throws {
    try await withServer { server in
      let client = try HTTPClient(port: server.port)
      let body = [UInt8](repeating: 65, count: 10_000)
      #expect(try client.request("GET", target: "/stats", body: body).status == 200)
      #expect(try client.request("POST", target: "/image", body: body).status == 405)
      // A chunked body, followed by a request.
      try client.send(
        "GET /stats HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
          + HTTPClient.text("GET", target: "/nowhere"))
      #expect(try client.readAnswer().status == 200)
      #expect(try client.readAnswer().status == 404)
      // A body that is too large ends the connection.
      do throws(HTTPClientError) {
        try client.send(HTTPClient.text("POST", target: "/image", bodyLength: 10_000_000))
        try client.send(bytes: [UInt8](repeating: 65, count: 10_000_000))
        try client.waitForClose()
      } catch {
        #expect(error == .closed)
      }
      #expect(try HTTPClient(port: server.port).get("/stats").status == 200)
    }
  }

  @Test func `a slow header ends its connection at the time-out, and a complete one does not`()
    async throws
  {
    try await withServer {
      $0.headerTimeout = .seconds(1)
    } body: { server in
      // On a busy machine even a fast client may need more than one attempt.
      var served: HTTPClient?
      try await eventually {
        served = try? HTTPClient(port: server.port)
        return (try? served?.get("/stats"))?.status == 200
      }
      let quick = try #require(served)
      let slow = try HTTPClient(port: server.port)
      var wasCut = false
      do throws(HTTPClientError) {
        try slow.send("GET /stats HTTP/1.1\r\nHost: t\r\n")
        for _ in 0..<2_000 {
          try slow.send("A: b\r\n")
          usleep(5_000)
        }
      } catch {
        wasCut = true
      }
      #expect(wasCut)
      // Connections between requests have the idle time-out.
      #expect(try quick.get("/stats").status == 200)
    }
  }

  @Test func `the kernel's send buffer of a response is limited`() async throws {
    let provider = TestProvider()
    let large = [UInt8](repeating: 1, count: 8 << 20)
    provider.keep(makeVariant(try makeRequest().key, body: large))
    try await withServer(provider) { server in
      let client = try HTTPClient(port: server.port, receiveBuffer: 4_096)
      try client.send(HTTPClient.text("GET", target: imageTarget))
      // The buffer is full when it does not grow any more.
      var earlier = 0
      var now = 0
      try await eventually("the buffer is full") {
        earlier = now
        now = queuedBytes(0, atPort: server.port)
        return now > 0 && now == earlier
      }
      // Besides the limit, one segment is filled and one on its way: 64 KiB each on loopback.
      #expect(now <= Int(ListeningSocket.unsentLimit) + 2 * 65_536)
    }
  }

  @Test func `clients beyond the connection limit wait while all connections are busy`()
    async throws
  {
    let work = CancellableProvider()
    try await withServer(work.provider, configure: { $0.connectionLimit = 2 }) { server in
      // Given two connections whose requests wait
      let one = try HTTPClient(port: server.port)
      let two = try HTTPClient(port: server.port)
      for client in [one, two] { try client.send(HTTPClient.text("GET", target: imageTarget)) }
      try await eventually { work.provider.asked.value == 2 }
      // When
      let three = try HTTPClient(port: server.port, timeout: 1)
      try three.send(HTTPClient.text("GET", target: "/stats"))
      // Then
      #expect(throws: HTTPClientError.timedOut) { try three.readAnswer() }
      #expect(server.figures.connections == 2 && server.figures.connectionsYielded == 0)
      one.close()
      try await eventually { (try? three.readAnswer())?.status == 200 }
    }
  }

  @Test func `an invalid address is reported in one error`() {
    var configuration = ServerConfiguration()
    configuration.port = 0
    configuration.addresses = [.host("localhost")]
    let server = Server(
      configuration: configuration, provider: TestProvider(),
      services: AdminServices(TestServices()), stats: makeStats, log: Log(level: .error))
    #expect(throws: ServerError.invalidAddress("localhost:0")) { try server.start() }
  }
}
