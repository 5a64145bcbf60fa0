// ForwardedFuzzTests: the client that proxies name, against RFC 7239's grammar.

import Model
import Platform
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct ForwardedFuzzTests {
  private static let words = [
    "6.6.6.6", "10.0.0.2", "for=", "For=", "for=6.6.6.6", "for=\"6.6.6.6:80\"", "\"", "\"", "\\",
    ",", ", ", ";", " ", "[", "]", ":", "unknown", "_x", "=", "[::1]:9", "\"\"", "by=10.0.0.1",
    "host=\"a,b\"", "host=\"a\\\"b\"", "host=a\"", "é", "fd00::1", "\t", "proto=http",
  ]

  private func proxies() throws -> TrustedProxies {
    var proxies = TrustedProxies()
    proxies.networks = try ["10.0.0.0/8"].map { try #require(CIDR($0)) }
    proxies.field = .forwarded
    return proxies
  }

  /// Returns whether a text is a forwarded-element (RFC 7239, section 4): pairs of a token, `=` and
  /// a token or quoted string. Blanks around pairs and the unquoted `:`, `[` and `]` of addresses
  /// are allowed, too.
  private static func isElement(_ text: String) -> Bool {
    var rest = Array(text.utf8)[...]
    func isToken(_ byte: UInt8) -> Bool { !"\"=;, \t".utf8.contains(byte) }
    func skipBlanks() { rest = rest.drop { $0 == 0x20 || $0 == 0x09 } }
    while true {
      // Pairs may be missing.
      rest = rest.drop { " \t;".utf8.contains($0) }
      if rest.isEmpty { return true }
      let name = rest.prefix(while: isToken)
      rest = rest.dropFirst(name.count)
      skipBlanks()
      guard rest.popFirst() == UInt8(ascii: "=") else { return false }
      if rest.first == UInt8(ascii: "\"") {
        rest.removeFirst()
        while let byte = rest.popFirst(), byte != UInt8(ascii: "\"") {
          if byte == UInt8(ascii: "\\") { _ = rest.popFirst() }
        }
      } else {
        skipBlanks()
        rest = rest.drop { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: "\"") }
        if rest.first == UInt8(ascii: "\"") { return false }
      }
      skipBlanks()
      guard let semicolon = rest.popFirst() else { return true }
      guard semicolon == UInt8(ascii: ";") else { return false }
    }
  }

  @Test func `only an element of the grammar names a client`() throws {
    let peer = try #require(IPAddress("10.0.0.1"))
    let proxies = try proxies()
    var named = 0
    try Fuzz.texts(
      "forwarded", usual: 4_000, make: { $0.sentence(of: Self.words, most: 8) },
      check: { text in
        // A line without commas is one element.
        let line = text.replacing(",", with: "")
        let client =
          proxies.client(of: peer, forwardedFor: [], forwarded: [Array(line.utf8)]).address ?? peer
        guard client != peer else { return }
        named += 1
        try hold(Self.isElement(line), "\(line) names \(client)")
        try hold(
          line.contains("\(client)") || client.description.contains(":"), "\(line): \(client)")
      })
    #expect(named > 0)
  }

  @Test func `a client's own elements never count behind a proxy's`() throws {
    let peer = try #require(IPAddress("10.0.0.1"))
    let own = try #require(IPAddress("198.51.100.1"))
    let proxies = try proxies()
    try Fuzz.texts(
      "spoofed", usual: 4_000, make: { $0.sentence(of: Self.words, most: 8) },
      check: { text in
        for element in ["for=198.51.100.1", "proto=http;for=\"198.51.100.1:1\";host=\"a\\\"b,c\""] {
          for lines in [["\(text), \(element)"], [text, element], [text, " , \(element) ,"]] {
            let lines = lines.map { Array($0.utf8) }
            let named = proxies.client(of: peer, forwardedFor: [], forwarded: lines)
            let client = named.address ?? peer
            try hold(client == own, "\(text) with \(element) names \(client)")
          }
        }
      })
  }
}
