// Tests of ServerTrail: CDN-Loop (RFC 8586), Via (RFC 9110, section 7.6.3), in and out.

import Core
import Testing

struct ServerTrailTests {
  @Test(arguments: [
    ("pictor-1", true), ("PICTOR-1", true), ("cloudflare; loops=1, pictor-1", true),
    ("pictor-1;a=b", true), (" ,, \tpictor-1\t; v=\"1, 2\" , x", true),
    ("pictor-10", false), ("a; pictor-1=2", false), ("", false), ("cloudflare; loops=1", false),
    ("pictor-1.example.com:80", false),
  ])
  func `a loop is recognized by the exact server name`(value: String, isLoop: Bool) {
    #expect(ServerTrail(parsing: value).isLoop(for: "pictor-1") == isLoop)
  }

  @Test func `a forwarded trail keeps its entries and appends this server`() {
    let trail = ServerTrail(parsing: "cloudflare; loops=1,\tFastly;a=\"b c\"")
    #expect(trail.value(through: "me") == "cloudflare; loops=1, Fastly;a=\"b c\", me")
    #expect(ServerTrail().value(through: "me") == "me")
    #expect(trail.bare == ServerTrail(parsing: "cloudflare; loops=2, Fastly").bare)
    #expect(trail.bare != ServerTrail(parsing: "Fastly, cloudflare").bare)
  }

  @Test func `a trail with too many servers counts as a loop`() {
    let names = (0..<ServerTrail.maximumServers).map { "s\($0)" }
    #expect(!ServerTrail(parsing: names.joined(separator: ",")).isLoop(for: "me"))
    #expect(ServerTrail(parsing: names.joined(separator: ",") + ",x").isLoop(for: "me"))
  }

  @Test(arguments: [
    ("1.1 me", true), ("1.0 fred, HTTP/1.1\tME (nginx)", true), ("1.1 me2", false), ("me", false),
    ("1.1 you (1.1 me)", false), ("", false),
  ])
  func `Via names a server by its second word`(value: String, isNamed: Bool) {
    #expect(ServerTrail.via(value, names: "me") == isNamed)
  }
}
