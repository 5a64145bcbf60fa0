// TrustedProxies: no client can choose the address that the log shows.

import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct TrustedProxiesTests {
  private func proxies(_ field: TrustedProxies.Field = .auto) throws -> TrustedProxies {
    var proxies = TrustedProxies()
    proxies.networks = try ["10.0.0.0/8", "fd00::/8"].map { try #require(CIDR($0)) }
    proxies.field = field
    return proxies
  }

  private func client(
    _ peer: String, for forwardedFor: [String] = [], forwarded: [String] = [],
    field: TrustedProxies.Field = .auto
  ) throws -> String {
    let peer: IPAddress = try #require(IPAddress(peer))
    let client = try proxies(field).client(
      of: peer, forwardedFor: forwardedFor.map { Array($0.utf8) },
      forwarded: forwarded.map { Array($0.utf8) })
    return try #require(client.address).description
  }

  @Test func `without a trusted proxy the client is the peer`() throws {
    #expect(try client("192.0.2.9", for: ["1.1.1.1"], forwarded: ["for=2.2.2.2"]) == "192.0.2.9")
    #expect(try client("::ffff:192.0.2.9", for: ["1.1.1.1"]) == "192.0.2.9")
    let none = TrustedProxies()
    let peer = try #require(IPAddress("10.0.0.1"))
    let named = none.client(of: peer, forwardedFor: [Array("1.1.1.1".utf8)], forwarded: [])
    #expect(named.address == peer)
    #expect(try client("10.0.0.1") == "10.0.0.1")
  }

  @Test(arguments: [
    (["198.51.100.1"], "198.51.100.1"), (["6.6.6.6, 198.51.100.1"], "198.51.100.1"),
    (["6.6.6.6, 198.51.100.1, 10.1.1.1 ,fd00::7"], "198.51.100.1"),
    (["6.6.6.6", "198.51.100.1", "10.1.1.1"], "198.51.100.1"),
    (["198.51.100.1:4711"], "198.51.100.1"), (["2001:db8::1"], "2001:db8::1"),
    (["[2001:DB8::1]:80"], "2001:db8::1"), (["[2001:db8::1]"], "2001:db8::1"),
    (["\"198.51.100.1\""], "198.51.100.1"), (["::ffff:198.51.100.1"], "198.51.100.1"),
    (["::ffff:10.0.0.9, 198.51.100.1, ::ffff:10.0.0.9"], "198.51.100.1"),
    ([" , 198.51.100.1,, \t, "], "198.51.100.1"),
    // All addresses are proxies: the first one is closest to the client.
    (["10.3.3.3, 10.2.2.2"], "10.3.3.3"),
    // An address that a trusted proxy does not provide is not searched for further ahead.
    (["6.6.6.6, unknown"], "10.0.0.1"), (["6.6.6.6, _hidden, 10.2.2.2"], "10.2.2.2"),
    (["6.6.6.6, 300.1.1.1"], "10.0.0.1"), (["6.6.6.6, 1.2.3"], "10.0.0.1"),
    (["6.6.6.6, [::1"], "10.0.0.1"), (["6.6.6.6, 1.1.1.1:x"], "10.0.0.1"),
    (["6.6.6.6, 1.1.1.1:99999999"], "10.0.0.1"), (["6.6.6.6, fe80::1%eth0"], "10.0.0.1"),
    (["6.6.6.6, 1.1.1.1 2.2.2.2"], "10.0.0.1"), ([""], "10.0.0.1"),
  ])
  func `X-Forwarded-For is read from its end`(lines: [String], expected: String) throws {
    #expect(try client("10.0.0.1", for: lines) == expected)
  }

  @Test(arguments: [
    (["for=198.51.100.1"], "198.51.100.1"),
    (["for=6.6.6.6, For=\"198.51.100.1:80\";proto=https;by=10.0.0.1"], "198.51.100.1"),
    (["proto=http;for=\"[2001:db8:cafe::17]:4711\""], "2001:db8:cafe::17"),
    (["for=\"[2001:db8::1]:_port\" ; by=_x, for=10.2.2.2"], "2001:db8::1"),
    (["for=6.6.6.6", "for=198.51.100.1"], "198.51.100.1"),
    (["for=\"198.51.100.\\1\""], "198.51.100.1"),
    (["for=6.6.6.6, for=unknown"], "10.0.0.1"), (["for=6.6.6.6, for=_gazonk"], "10.0.0.1"),
    (["for=6.6.6.6, proto=https"], "10.0.0.1"),
    (["for=6.6.6.6;for=7.7.7.7"], "10.0.0.1"), (["for=6.6.6.6, for="], "10.0.0.1"),
    (["for=6.6.6.6, for"], "10.0.0.1"), (["for=\"6.6.6.6"], "10.0.0.1"),
    (["for=\"6.6.6.6\" x"], "10.0.0.1"),
    // A token holds no quote: where the element ends would be uncertain.
    (["for=6.6.6.6;host=a\"b\""], "10.0.0.1"), (["for= \"6.6.6.6\""], "10.0.0.1"),
    (["host\"=a;for=6.6.6.6"], "10.0.0.1"), (["for=\"\\\"6.6.6.6\\\"\""], "10.0.0.1"),
    (["for=6.6.6.6;x=a\", for=198.51.100.1;host=a\"b"], "10.0.0.1"),
    (["x;by=a;for=6.6.6.6"], "10.0.0.1"), ([";for=198.51.100.1;;by=a;"], "198.51.100.1"),
    // A port needs quotes, but many proxies write none.
    (["for=198.51.100.1:80"], "198.51.100.1"), (["for=[2001:db8::1]:80"], "2001:db8::1"),
    // An unterminated quotation of the client does not include the proxy's own entry.
    (["for=6.6.6.6;x=\", for=198.51.100.1"], "198.51.100.1"),
    (["for=\"6.6.6.6, for=\"198.51.100.1\";by=\"a\\\",b\""], "198.51.100.1"),
    (["x=\"\\, for=198.51.100.1"], "198.51.100.1"),
  ])
  func `Forwarded is read from its end`(lines: [String], expected: String) throws {
    #expect(try client("10.0.0.1", forwarded: lines.isEmpty ? [] : lines) == expected)
  }

  @Test func `a header that the proxies do not write is ignored`() throws {
    // nginx appends to X-Forwarded-For and forwards Forwarded; others do the opposite.
    let real = "198.51.100.1"
    let lie = "6.6.6.6"
    #expect(
      try client("10.0.0.1", for: [real], forwarded: ["for=\(lie)"], field: .xForwardedFor) == real)
    #expect(
      try client("10.0.0.1", for: [lie], forwarded: ["for=\(real)"], field: .forwarded) == real)
    #expect(try client("10.0.0.1", for: [lie], forwarded: [], field: .forwarded) == "10.0.0.1")
    #expect(try client("10.0.0.1", for: [real], forwarded: ["for=\(lie)"]) == "10.0.0.1")
    #expect(try client("10.0.0.1", for: [real], forwarded: ["for=\(real)"]) == real)
  }

  @Test(arguments: [("X-Forwarded-For", "198.51.100.7"), ("forwarded", "for=198.51.100.7")])
  func `a forwarding field of an unlisted peer has one line, and one of a listed peer none`(
    name: String, value: String
  ) async throws {
    for network in [nil, "10.0.0.0/8", "127.0.0.0/8"] {
      let file = try LogFile()
      try await withServer(log: file.log()) {
        $0.trustedProxies.networks = [network].compactMap { $0.flatMap { CIDR($0) } }
      } body: { server in
        for _ in 0..<3 {
          let client = try HTTPClient(port: server.port)
          #expect(try client.get("/stats").status == 200)
          #expect(try client.get(imageTarget, headers: ["\(name)": value]).status == 404)
        }
      }
      let lines = try file.lines().filter { $0.contains("does not list") }
      #expect(lines.count == (network == "127.0.0.0/8" ? 0 : 1))
      for line in lines {
        #expect(line.contains("server.trusted_proxies") && line.contains("127.0.0.1"))
        #expect(line.lowercased().contains(name.lowercased()))
        #expect(line.contains("\"level\":\"warning\""))
      }
    }
  }

  @Test func `a chain of proxies is followed up to a limit`() throws {
    let chain = Array(repeating: "10.0.0.2", count: 4_000).joined(separator: ",")
    #expect(try client("10.0.0.1", for: ["6.6.6.6," + chain]) == "10.0.0.2")
    let lines = Array(repeating: "10.0.0.2", count: 1_000)
    #expect(try client("10.0.0.1", for: ["6.6.6.6"] + lines) == "10.0.0.2")
    #expect(try client("10.0.0.1", for: [String(repeating: ",", count: 8_000)]) == "10.0.0.1")
  }
}
