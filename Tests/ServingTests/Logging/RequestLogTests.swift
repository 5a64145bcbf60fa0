// RequestLogTests: the content of request lines (target, client, identifiers) and their levels.

import Core
import FoundationEssentials
import Glibc
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct RequestLogTests {
  /// A JSON line of the log.
  private struct Line: Decodable {
    let level, message: String
    let method, target, url, client, error, cache: String?
    let userAgent, requestID, traceID: String?
    let status: Int?

    enum CodingKeys: String, CodingKey {
      case level, message, method, target, url, client, error, cache, status
      case userAgent = "user_agent"
      case requestID = "request_id"
      case traceID = "trace_id"
    }
  }

  /// Returns the request lines that a server logs while `body` runs, as text.
  private func logged(
    _ format: Log.Format = .json, level: LogLevel = .info,
    configure: (inout ServerConfiguration) -> Void = { _ in },
    body: (Server) async throws -> Void
  ) async throws -> [String] {
    let file = try LogFile(format)
    let provider = TestProvider()
    provider.keep(makeVariant(try makeRequest().key))
    try await withServer(
      provider, log: file.log(level: level), configure: configure, body: body)
    return try file.lines().filter { $0.contains("request") }
  }

  private func lines(
    level: LogLevel = .info, configure: (inout ServerConfiguration) -> Void = { _ in },
    _ body: (Server) async throws -> Void
  ) async throws -> [Line] {
    try await logged(level: level, configure: configure, body: body).map {
      try JSONDecoder().decode(Line.self, from: Data($0.utf8))
    }
  }

  @Test func `a request line contains the target, the client and its identifiers`() async throws {
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    let found = try await lines(
      configure: { $0.trustedProxies.networks = [CIDR("127.0.0.0/8")].compactMap { $0 } }
    ) { server in
      let client = try HTTPClient(port: server.port)
      let answer = try client.get(
        "/image?url=https://example.org/absent.png&w=3",
        headers: [
          "User-Agent": "Mozilla/5.0 (X11)", "X-Forwarded-For": "6.6.6.6",
          "X-Forwarded-For": "198.51.100.1", "X-Request-ID": "0f-proxy-7",
          "traceparent": "00-\(trace)-00f067aa0ba902b7-01", "Cookie": "hdr4mark",
        ])
      #expect(answer.status == 404 && answer["x-request-id"] == "0f-proxy-7")
      #expect(answer.text.contains("\"request_id\":\"0f-proxy-7\""))
      // A value out of range, and an unknown path
      #expect(try client.get("/image?url=https://example.org/a.png&w=0").status == 400)
      #expect(try client.get("/nothing?x=1").status == 404)
    }
    let first = try #require(found.first)
    #expect(first.target == "/image?url=https://example.org/absent.png&w=3")
    #expect(first.url == "https://example.org/absent.png" && first.method == "GET")
    #expect(first.client == "198.51.100.1" && first.userAgent == "Mozilla/5.0 (X11)")
    #expect(first.requestID == "0f-proxy-7" && first.traceID == trace)
    #expect(found.dropFirst().map(\.status) == [400, 404])
    #expect(
      found.dropFirst().map(\.target) == [
        "/image?url=https://example.org/a.png&w=0", "/nothing?x=1",
      ])
    #expect(found.dropFirst().allSatisfy { $0.client == "127.0.0.1" && $0.userAgent == nil })
  }

  @Test(arguments: [
    ("a", true), ("F9168C5E-CEB2-4faa-B6BF-329BF39FA1E4", true),
    (String(repeating: "x", count: 64), true), ("Root=1-6789:a/b+c~d@e_f.g", true),
    (String(repeating: "x", count: 65), false), ("a b", false), ("\"a\"", false), ("<a>", false),
    ("é", false), ("a,b", false), ("", false),
  ])
  func `a valid request id is adopted in hits and errors`(
    id: String, isTaken: Bool
  ) async throws {
    let found = try await lines(level: .debug) { server in
      let client = try HTTPClient(port: server.port)
      for target in [imageTarget, "/nothing", "/stats", imageTarget] {
        let answer = try client.get(target, headers: ["X-Request-ID": id])
        let told = try #require(answer["x-request-id"])
        #expect((told == id) == isTaken && (isTaken || told.utf8.count == RequestID.ownLength))
      }
      // A hit of another client with the same head
      let other = try client.get(imageTarget)
      #expect(other["x-request-id"]?.utf8.count == RequestID.ownLength)
      #expect(other["server-timing"]?.hasPrefix("total;dur=") == true && other["age"] != nil)
    }
    #expect(found.count == 5 && (found.prefix(4).allSatisfy { $0.requestID == id } == isTaken))
    #expect(Set(found.map(\.requestID)).count == (isTaken ? 2 : 5))
  }

  @Test(arguments: [
    "GET /image?url=http%3A%2F%2Fh%2Fa HTTP/1.1\r\nHost: t\r\nHost: u\r\n",
    "GET /image?url=http%3A%2F%2Fh%2Fa HTTP/1.1\nHost: t\r\n",
    "GET /image?url=http%3A%2F%2Fh%2Fa HTTP/2.0\r\nHost: t\r\n",
    "GET /image?url=http%3A%2F%2Fh%2Fa HTTP/1.1\r\nHost: t\r\nX: \u{1}\r\n",
  ])
  func `a malformed request is logged with its target, in pieces of any size`(
    text: String
  ) async throws {
    for pieces in [1, 2, 40, text.utf8.count] {
      let found = try await lines { server in
        let client = try HTTPClient(port: server.port)
        // After a valid request
        #expect(try client.get("/nothing").status == 404)
        let bytes = Array(text.utf8)
        for piece in 0..<pieces {
          let range = bytes.count * piece / pieces..<bytes.count * (piece + 1) / pieces
          // The last requests may find the connection closed.
          _ = try? client.send(bytes: Array(bytes[range]))
          if pieces <= 40 { usleep(2_000) }
        }
        #expect(try client.readAnswer().status >= 400)
      }
      let refused = try #require(found.first { $0.message == "request refused" }, "\(pieces)")
      #expect(refused.target == "/image?url=http%3A%2F%2Fh%2Fa", "\(pieces)")
      #expect(refused.client == "127.0.0.1")
    }
  }

  @Test func `a request that is not HTTP is logged truncated and escaped`() async throws {
    let found = try await logged { server in
      let client = try HTTPClient(port: server.port)
      try client.send(bytes: [0x16, 3, 1, 2, 0, 1] + Array(repeating: 0xfe, count: 500))
      #expect(try client.readAnswer().status == 400)
    }
    let line = try #require(found.first)
    #expect(line.contains(#""target":"\\u{16}"#) && line.utf8.count < 600)
  }

  @Test func `no header can forge a line or field in either format`() async throws {
    for format in Log.Format.allCases {
      let found = try await logged(format) { server in
        let client = try HTTPClient(port: server.port)
        let agent = "x\" status=200 client=1.1.1.1 \u{9b}2J \u{202e}\u{2028} \\"
        _ = try client.get(
          "/nothing%0Astatus=200?a=\"b\"",
          headers: ["User-Agent": agent + String(repeating: "y", count: 2_000)])
      }
      let line = try #require(found.first)
      #expect(found.count == 1 && line.utf8.count < 1_200)
      #expect(!line.unicodeScalars.contains { $0.value < 0x20 || (0x7f..<0xa0).contains($0.value) })
      #expect(!line.contains("\u{202e}") && !line.contains("\u{2028}"))
      switch format {
      case .json:
        #expect(try JSONDecoder().decode(Line.self, from: Data(line.utf8)).client == "127.0.0.1")
      case .text, .logfmt:
        #expect(
          line.contains(#"user_agent="x\" status=200 client=1.1.1.1 \u009b2J \u202e\u2028 \\"#))
      }
    }
  }

  @Test(arguments: [
    (LoggedRequests.all, LogLevel.info, ["info", "info", "info", "info"]),
    (.misses, .info, ["info", "info"]), (.misses, .debug, ["debug", "debug", "info", "info"]),
    (.errors, .info, ["info"]), (.errors, .debug, ["debug", "debug", "debug", "info"]),
    (.all, .warning, []),
  ])
  func `the configuration selects which responses are logged`(
    which: LoggedRequests, level: LogLevel, levels: [String]
  ) async throws {
    let found = try await lines(level: level, configure: { $0.log.requests = which }) { server in
      let client = try HTTPClient(port: server.port)
      #expect(try client.get(imageTarget).status == 200)
      #expect(try client.get("/stats").status == 200)
      #expect(try client.request("OPTIONS", target: "/image").status == 204)
      #expect(try client.get("/nothing").status == 404)
    }
    #expect(found.map(\.level) == levels)
  }
}
