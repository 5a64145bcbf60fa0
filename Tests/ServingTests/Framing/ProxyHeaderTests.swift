// ProxyHeaderTests: PROXY headers, whole, in part and wrong, and what a server does with them.

import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct ProxyHeaderTests {
  private static let signature: [UInt8] = [13, 10, 13, 10, 0, 13, 10, 0x51, 0x55, 0x49, 0x54, 10]
  private static let v4: [UInt8] = [198, 51, 100, 7, 10, 0, 0, 1, 0x12, 0x34, 0, 80]
  private static let v6: [UInt8] =
    [0x20, 1, 0x0d, 0xb8] + [UInt8](repeating: 0, count: 11) + [1]
    + [UInt8](repeating: 0, count: 16) + [0, 1, 0, 2]

  private static func binary(
    _ command: UInt8, family: UInt8, _ rest: [UInt8], length: Int? = nil
  ) -> [UInt8] {
    let length = length ?? rest.count
    return signature + [command, family, UInt8(length >> 8), UInt8(length & 0xff)] + rest
  }

  private static let valid: [(bytes: [UInt8], client: String?)] = [
    (Array("PROXY TCP4 198.51.100.7 10.0.0.1 4660 80\r\n".utf8), "198.51.100.7"),
    (Array("PROXY TCP6 2001:db8::1 ::1 65535 0\r\n".utf8), "2001:db8::1"),
    (Array("PROXY UNKNOWN\r\n".utf8), nil),
    (Array("PROXY UNKNOWN ffff::1 anything 1 2 3\r\n".utf8), nil),
    (binary(0x21, family: 0x11, v4), "198.51.100.7"),
    (binary(0x21, family: 0x21, v6), "2001:db8::1"),
    (binary(0x21, family: 0x11, v4 + [4, 0, 1, 9]), "198.51.100.7"),
    (binary(0x21, family: 0x31, [UInt8](repeating: 1, count: 216)), nil),
    (binary(0x21, family: 0x00, []), nil), (binary(0x20, family: 0x00, []), nil),
    (binary(0x20, family: 0x11, v4), nil), (binary(0x20, family: 0x11, []), nil),
  ]

  private static let invalid: [[UInt8]] =
    [
      "GET / HTTP/1.1\r\n", "proxy TCP4 1.2.3.4 1.2.3.4 1 2\r\n", "PROXY\r\n", "PROXY  TCP4\r\n",
      "PROXY TCP4 198.51.100.7 10.0.0.1 1\r\n", "PROXY TCP4 198.51.100.7 10.0.0.1 1 2 3\r\n",
      "PROXY TCP4  198.51.100.7 10.0.0.1 1 2\r\n", "PROXY TCP4 198.51.100.7 10.0.0.1 1 65536\r\n",
      "PROXY TCP4 198.51.100.7 10.0.0.1 -1 2\r\n", "PROXY TCP4 198.51.100.7 10.0.0.1 1 2\n",
      "PROXY TCP4 ::1 ::1 1 2\r\n", "PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n",
      "PROXY TCP4 198.51.100.07 10.0.0.1 1 2\r\n", "PROXY UDP4 1.2.3.4 1.2.3.4 1 2\r\n",
      "PROXY UNKNOWN " + String(repeating: "x", count: 92) + "\r\n",
    ].map { Array($0.utf8) } + [
      binary(0x11, family: 0x11, v4), binary(0x22, family: 0x11, v4),
      binary(0x21, family: 0x12, v4), binary(0x21, family: 0x41, v4),
      binary(0x21, family: 0x11, Array(v4.dropLast())), binary(0x21, family: 0x21, v4),
      binary(0x21, family: 0x11, v4, length: 4_081),
    ]

  @Test func `a header names the client, whatever follows it, and a part of it is incomplete`() {
    for (bytes, client) in Self.valid {
      let expected = ProxyHeader(length: bytes.count, client: client.flatMap { IPAddress($0) })
      #expect(ProxyHeader.read(bytes) == .header(expected))
      #expect(ProxyHeader.read(bytes + Array("GET /".utf8)) == .header(expected))
      for count in bytes.indices {
        #expect(ProxyHeader.read(Array(bytes[..<count])) == .incomplete, "\(bytes) to \(count)")
      }
    }
  }

  @Test func `other bytes are no header`() {
    for bytes in Self.invalid { #expect(ProxyHeader.read(bytes) == .invalid, "\(bytes)") }
    #expect(
      ProxyHeader.read(Self.binary(0x21, family: 0x11, Self.v4, length: 4_080)) == .incomplete)
  }

  /// Runs a server that expects headers from 127.0.0.1, and one request of each client at a time.
  private func withProxy(
    network: String = "127.0.0.0/8", body: (Server, CancellableProvider) async throws -> Void
  ) async throws {
    let work = CancellableProvider()
    work.provider.keep(makeVariant(try makeRequest("https://h/hit").key, body: [1, 2, 3]))
    let proxy = try #require(CIDR(network))
    try await withServer(work.provider) {
      $0.proxyProtocol = true
      $0.trustedProxies.networks = [proxy]
      $0.maximumActiveRequestsPerClient = 1
      $0.operatorAddress = ListenAddress("0")
    } body: { server in
      try await body(server, work)
    }
  }

  @Test(arguments: [1, 7, 1_000])
  func `the named client counts, in pieces of any size`(size: Int) async throws {
    try await withProxy { server, work in
      for (bytes, client) in Self.valid where client != nil {
        // Given a request of the client that waits
        let asked = work.provider.asked.value
        let waiting = try HTTPClient(port: server.port)
        let request = Array(HTTPClient.text("GET", target: imageTarget).utf8)
        let all = bytes + request
        for start in stride(from: 0, to: all.count, by: size) {
          try waiting.send(bytes: Array(all[start..<min(start + size, all.count)]))
        }
        try await eventually { work.provider.asked.value == asked + 1 }
        // Then it has no second one, over another connection
        let second = try HTTPClient(port: server.port)
        try second.send(bytes: bytes + request)
        #expect(try second.readAnswer().status == 429)
        // But the connection is a usual one
        #expect(try second.get("/image?url=https://h/hit").body == [1, 2, 3])
        waiting.close()
        try await eventually { server.figures.active == 0 }
      }
    }
  }

  @Test func `a header in front of a long request loses nothing of it`() async throws {
    try await withProxy { server, _ in
      for (bytes, _) in Self.valid {
        for length in [4_000, 7_900, 8_000, 8_100, 12_000] {
          let client = try HTTPClient(port: server.port)
          let request = HTTPClient.text(
            "GET", target: "/image?url=https://h/hit",
            headers: ["X-Long": String(repeating: "x", count: length)])
          try client.send(bytes: bytes + Array(request.utf8))
          #expect(try client.readAnswer().body == [1, 2, 3], "\(length)")
        }
      }
    }
  }

  @Test func `a trusted proxy without a header is refused`() async throws {
    try await withProxy { server, _ in
      let client = try HTTPClient(port: server.port)
      let answer = try client.get("/stats")
      #expect(answer.status == 400 && answer.text.contains("PROXY"))
      try client.waitForClose()
      // But not by the operators' listener
      let port = try #require(server.operatorPort)
      #expect(try HTTPClient(port: port).get("/stats").status == 200)
    }
  }

  @Test func `a header of other clients is refused, and their requests are answered`() async throws
  {
    try await withProxy(network: "10.0.0.0/8") { server, _ in
      #expect(try HTTPClient(port: server.port).get("/stats").status == 200)
      for (bytes, _) in Self.valid {
        let client = try HTTPClient(port: server.port)
        try client.send(bytes: bytes + Array(HTTPClient.text("GET", target: "/stats").utf8))
        #expect(try client.readAnswer().status == 400)
      }
    }
  }

  private func withTwoConnectionsPerClient(body: (Server) async throws -> Void) async throws {
    let proxy = try #require(CIDR("127.0.0.0/8"))
    try await withServer(
      configure: {
        $0.proxyProtocol = true
        $0.trustedProxies.networks = [proxy]
        $0.connectionsPerClient = 2
        $0.headerTimeout = .seconds(3_600)
        $0.idleTimeout = .seconds(3_600)
      }, body: body)
  }

  @Test func `connections count as those of the client that the header names`() async throws {
    try await withTwoConnectionsPerClient { server in
      let first = Array("PROXY TCP4 198.51.100.7 10.0.0.1 4660 80\r\n".utf8)
      let second = Array("PROXY TCP4 198.51.100.8 10.0.0.1 4660 80\r\n".utf8)
      // Given a client that uses its whole share
      let busy = try (0..<2).map { _ in
        let client = try HTTPClient(port: server.port)
        try client.occupy(after: first)
        return client
      }
      // When it comes with a third connection, with a request and without
      for request in ["GET /stats HTTP/1.1\r\nHost: t\r\n\r\n", ""] {
        let more = try HTTPClient(port: server.port)
        try more.send(bytes: first + Array(request.utf8))
        // Then it is refused
        let refused = try more.readAnswer()
        #expect(refused.status == 429 && refused["Retry-After"] == "1")
        #expect(refused.text.contains("\"code\":\"rate_limited\""))
        try more.waitForClose()
      }
      #expect(server.figures.connectionsRefused == 2)
      // And another client of the proxy is served, and so is the proxy itself
      for header in [second, second, Array("PROXY UNKNOWN\r\n".utf8)] {
        let other = try HTTPClient(port: server.port)
        try other.send(bytes: header + Array(HTTPClient.text("GET", target: "/stats").utf8))
        #expect(try other.readAnswer().status == 200)
      }
      // When one of its connections ends, then it has a place again
      busy[0].close()
      try await eventually {
        let again = try HTTPClient(port: server.port)
        try again.send(bytes: first + Array(HTTPClient.text("GET", target: "/stats").utf8))
        return try again.readAnswer().status == 200
      }
      withExtendedLifetime(busy) {}
    }
  }

  @Test func `a named client's idle connections make room for its own`() async throws {
    try await withTwoConnectionsPerClient { server in
      let header = Array("PROXY TCP4 198.51.100.7 10.0.0.1 4660 80\r\n".utf8)
      let crowd = try (0..<6).map { _ in
        let client = try HTTPClient(port: server.port)
        try client.send(bytes: header + Array(HTTPClient.text("GET", target: "/stats").utf8))
        #expect(try client.readAnswer().status == 200)
        return client
      }
      try await eventually { server.figures.connections == 2 }
      #expect(server.figures.connectionsYielded == 4)
      withExtendedLifetime(crowd) {}
    }
  }
}
