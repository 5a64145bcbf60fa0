// ProtocolTests: tests of malformed, slow and unusual requests, and of failing server starts.

import Glibc
import Model
import Telemetry
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct ProtocolTests {
  @Test func `unknown paths and methods get the contract's errors`() async throws {
    try await withServer(TestProvider()) { server in
      let client = try HTTPClient(port: server.port)
      let nowhere = try client.get("/nowhere?x=%zz")
      #expect(nowhere.status == 404)
      #expect(nowhere.text.contains("\"code\":\"not_found\""))
      #expect(nowhere.text.contains("/nowhere"))
      for (method, path) in [
        ("DELETE", "/image?url=x"), ("POST", "/stats"), ("PROPFIND", "/image"),
      ] {
        let answer = try client.request(method, path)
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

  @Test func `stats is readable JSON`() async throws {
    try await withServer(TestProvider()) { server in
      let client = try HTTPClient(port: server.port)
      let answer = try client.get("/stats")
      #expect(answer.status == 200)
      #expect(answer["Content-Type"] == "application/json")
      #expect(answer["Cache-Control"] == "no-store")
      #expect(answer.text.contains("\"version\" : \"1.2.3\""))
      #expect(answer.text.contains("\"status\" : \"serving\""))
      let head = try client.head("/stats")
      #expect(head.status == 200 && head.body.isEmpty)
    }
  }

  @Test func `a body is read and thrown away, as far as is reasonable`() async throws {
    try await withServer(TestProvider()) { server in
      let client = try HTTPClient(port: server.port)
      let body = [UInt8](repeating: 65, count: 10_000)
      #expect(try client.request("GET", "/stats", body: body).status == 200)
      #expect(try client.request("POST", "/image", body: body).status == 405)
      // A chunked one, and a request behind it.
      try client.send(
        "GET /stats HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
          + HTTPClient.text("GET", "/nowhere"))
      #expect(try client.readAnswer().status == 200)
      #expect(try client.readAnswer().status == 404)
      // One that is too large ends the connection.
      do throws(HTTPClientError) {
        try client.send(HTTPClient.text("POST", "/image", bodyLength: 10_000_000))
        try client.send(bytes: [UInt8](repeating: 65, count: 10_000_000))
        try client.waitForClose()
      } catch {
        #expect(error == .closed)
      }
      #expect(try HTTPClient(port: server.port).get("/stats").status == 200)
    }
  }

  @Test(arguments: [
    "GET /stats HTTP/1.1\r\n\r\n", "GET /a b HTTP/1.1\r\nHost: t\r\n\r\n", "\0\0\0\0\r\n\r\n",
    "GET /stats HTTP/9.9\r\nHost: t\r\n\r\n", "GET\r\n\r\n", "\u{16}\u{3}\u{1}\r\n\r\n",
    "GET /stats\0evil HTTP/1.1\r\nHost: t\r\n\r\n",
    "GET /" + String(repeating: "x", count: 20_000) + " HTTP/1.1\r\nHost: t\r\n\r\n",
    "GET /stats HTTP/1.1\r\nHost: t\r\nA: " + String(repeating: "x", count: 20_000) + "\r\n\r\n",
    "POST /image HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
  ])
  func `a request that is not HTTP gets no image and ends its connection`(text: String)
    async throws
  {
    try await withServer(
      TestProvider(), configure: { $0.headerTimeout = .seconds(1) }
    ) { server in
      let client = try HTTPClient(port: server.port)
      do throws(HTTPClientError) {
        try client.send(text)
        let answer = try client.readAnswer()
        #expect((400..<600).contains(answer.status))
        try client.waitForClose()
      } catch {
        #expect(error == .closed)
      }
      #expect(
        await eventually {
          (try? HTTPClient(port: server.port).get("/stats"))?.status == 200
        })
    }
  }

  @Test func `a header that dribbles in is cut off, a whole one is not`() async throws {
    try await withServer(
      TestProvider(), configure: { $0.headerTimeout = .seconds(1) }
    ) { server in
      // On a busy machine even a quick client may need more than one try.
      var served: HTTPClient?
      #expect(
        await eventually {
          served = try? HTTPClient(port: server.port)
          return (try? served?.get("/stats"))?.status == 200
        })
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
      // Kept connections have their idle time.
      #expect(try quick.get("/stats").status == 200)
    }
  }

  @Test func `a client that does not read its answer is cut off`() async throws {
    let provider = TestProvider()
    let large = [UInt8](repeating: 1, count: 32 << 20)
    provider.keep(makeVariant(try makeRequest().key, body: large))
    try await withServer(
      provider,
      configure: {
        $0.answerTimeout = .milliseconds(100)
        $0.minimumReadRate = 1 << 30
      }
    ) { server in
      let client = try HTTPClient(port: server.port, receiveBuffer: 4_096)
      try client.send(HTTPClient.text("GET", imageTarget))
      #expect(await eventually { server.figures.byStatus["200"] == 1 })
      #expect(await eventually { server.figures.connections == 0 })
      #expect(server.figures.bytesSent == 0)
    }
  }

  @Test func `the kernel keeps little of what a client does not read`() async throws {
    let provider = TestProvider()
    let large = [UInt8](repeating: 1, count: 8 << 20)
    provider.keep(makeVariant(try makeRequest().key, body: large))
    try await withServer(provider) { server in
      let client = try HTTPClient(port: server.port, receiveBuffer: 4_096)
      try client.send(HTTPClient.text("GET", imageTarget))
      // Full when it does not grow any more.
      var (earlier, now) = (0, 0)
      let isFull = await eventually {
        (earlier, now) = (now, bytesInKernel(fromPort: server.port))
        return now > 0 && now == earlier
      }
      #expect(isFull)
      #expect(now < 2 * Int(Listener.unsentLimit))
    }
  }

  @Test func `clients beyond the connection limit wait until there is room`() async throws {
    try await withServer(TestProvider(), configure: { $0.connectionLimit = 2 }) { server in
      let one = try HTTPClient(port: server.port)
      let two = try HTTPClient(port: server.port)
      #expect(try one.get("/stats").status == 200)
      #expect(try two.get("/stats").status == 200)
      let three = try HTTPClient(port: server.port)
      try three.send(HTTPClient.text("GET", "/stats"))
      #expect(server.figures.connections == 2)
      one.close()
      #expect(try three.readAnswer().status == 200)
    }
  }

  @Test func `a port in use and a bad address are one clear line`() async throws {
    try await withServer(TestProvider()) { server in
      var configuration = ServerConfiguration()
      configuration.port = server.port
      let second = Server(
        configuration: configuration, provider: TestProvider(),
        services: AdminServices(TestServices()), stats: makeStats,
        log: Log(level: .error))
      do throws(ServerError) {
        try second.start()
        Issue.record("two servers on one port")
      } catch {
        #expect(
          "\(error)"
            == "cannot listen on 127.0.0.1:\(server.port): Address already in use (98)")
      }
      configuration.address = "localhost"
      let third = Server(
        configuration: configuration, provider: TestProvider(),
        services: AdminServices(TestServices()), stats: makeStats,
        log: Log(level: .error))
      #expect(throws: ServerError.invalidAddress("localhost:\(server.port)")) { try third.start() }
    }
  }

  @Test func `an IPv6 address is listened on`() async throws {
    try await withServer(TestProvider(), configure: { $0.address = "::1" }) { server in
      #expect(server.port > 0)
    }
  }

  @Test func `one worker and many both serve`() async throws {
    for workers in [1, 5] {
      try await withServer(TestProvider(), configure: { $0.workers = workers }) { server in
        let clients = try (0..<10).map { _ in try HTTPClient(port: server.port) }
        for client in clients { #expect(try client.get("/stats").status == 200) }
      }
    }
  }
}

/// Returns the bytes in the kernel's send queues of a port, from `/proc/net/tcp` (proc(5)).
private func bytesInKernel(fromPort port: Int) -> Int {
  guard let file = fopen("/proc/net/tcp", "re") else { return 0 }
  defer { fclose(file) }
  var (line, sum) = ([CChar](repeating: 0, count: 1_024), 0)
  while fgets(&line, CInt(line.count), file) != nil {
    let words = String(
      decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self
    )
    .split(separator: " ")
    guard words.count > 4, let local = words[1].split(separator: ":").last,
      Int(local, radix: 16) == port, let queue = words[4].split(separator: ":").first
    else { continue }
    sum += Int(queue, radix: 16) ?? 0
  }
  return sum
}
