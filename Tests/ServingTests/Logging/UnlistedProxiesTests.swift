// UnlistedProxiesTests: the line that tells the operator why all clients look like one.

import Platform
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct UnlistedProxiesTests {
  private let signature: [UInt8] = [13, 10, 13, 10, 0, 13, 10, 0x51, 0x55, 0x49, 0x54, 10]

  /// Returns the lines about unlisted proxies that a server logs.
  private func lines(
    trusting network: String? = nil, proxyProtocol: Bool = false, ask: (Server) throws -> Void
  ) async throws -> [String] {
    let file = try LogFile()
    try await withServer(
      TestProvider(), log: file.log(),
      configure: {
        $0.trustedProxies.networks = [network].compactMap { $0.flatMap { CIDR($0) } }
        $0.proxyProtocol = proxyProtocol
      }
    ) { server in try ask(server) }
    return try file.lines().filter {
      $0.contains("does not list") || $0.contains("does not permit")
    }
  }

  @Test(arguments: [("X-Forwarded-For", "198.51.100.7"), ("forwarded", "for=198.51.100.7")])
  func `a forwarding field of an unlisted peer has one line, and one of a listed peer none`(
    name: String, value: String
  ) async throws {
    for network in [nil, "10.0.0.0/8", "127.0.0.0/8"] {
      let lines = try await lines(trusting: network) { server in
        for _ in 0..<3 {
          let client = try HTTPClient(port: server.port)
          #expect(try client.get("/stats").status == 200)
          #expect(try client.get(imageTarget, headers: ["\(name)": value]).status == 404)
        }
      }
      #expect(lines.count == (network == "127.0.0.0/8" ? 0 : 1))
      for line in lines {
        #expect(line.contains("server.trusted_proxies") && line.contains("127.0.0.1"))
        #expect(line.lowercased().contains(name.lowercased()))
        #expect(line.contains("\"level\":\"warning\""))
      }
    }
  }

  @Test(arguments: [
    ("10.0.0.0/8", true, "server.trusted_proxies"), ("127.0.0.0/8", false, "server.proxy_protocol"),
  ])
  func `an unexpected PROXY header has one line with the key that is missing`(
    network: String, proxyProtocol: Bool, key: String
  ) async throws {
    let texts = [
      Array("PROXY TCP4 198.51.100.7 10.0.0.1 4660 80\r\n".utf8),
      signature + [0x20, 0, 0, 0],
    ]
    for text in texts {
      let lines = try await lines(trusting: network, proxyProtocol: proxyProtocol) { server in
        for _ in 0..<2 {
          let client = try HTTPClient(port: server.port)
          try client.send(bytes: text + Array(HTTPClient.text("GET", target: "/stats").utf8))
          #expect(try client.readAnswer().status == 400)
        }
      }
      #expect(lines.count == 1)
      #expect(lines.first?.contains(key) == true && lines.first?.contains("PROXY") == true)
    }
  }

  @Test func `other bytes are no unexpected header`() async throws {
    let lines = try await lines { server in
      for text in ["PROXY", "GET  /\r\n\r\n", "\r\n\r\nGET / HTTP/9\r\n\r\n"] {
        let client = try HTTPClient(port: server.port)
        try client.send(text + "\r\n\r\n")
        #expect(try client.readAnswer().status >= 400)
      }
    }
    #expect(lines.isEmpty)
  }
}
