// ClientFuzzTests: the client that proxies name, by RFC 7239 and the PROXY protocol.

import Core
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
    let byForwarded = try proxies()
    var byForwardedFor = byForwarded
    byForwardedFor.field = .xForwardedFor
    try Fuzz.texts(
      "spoofed", usual: 4_000, make: { $0.sentence(of: Self.words, most: 8) },
      check: { text in
        for element in [
          "for=198.51.100.1", "proto=http;for=\"198.51.100.1:1\";host=\"a\\\"b,c\"", "198.51.100.1",
        ] {
          for lines in [["\(text), \(element)"], [text, element], [text, " , \(element) ,"]] {
            let lines = lines.map { Array($0.utf8) }
            let named =
              element.contains("for=")
              ? byForwarded.client(of: peer, forwardedFor: [], forwarded: lines)
              : byForwardedFor.client(of: peer, forwardedFor: lines, forwarded: [])
            let client = named.address ?? peer
            try hold(client == own, "\(text) with \(element) names \(client)")
          }
        }
      })
  }
}

@Suite(.onOwnThreads) struct ProxyHeaderFuzzTests {
  private static let words: [[UInt8]] = [
    Array("PROXY ".utf8), Array("TCP4".utf8), Array("TCP6".utf8), Array("UNKNOWN".utf8),
    Array("\r\n".utf8), Array(" 1.2.3.4".utf8), Array(" ::1".utf8), Array(" 80".utf8),
    [13, 10, 13, 10, 0, 13, 10, 0x51, 0x55, 0x49, 0x54, 10], [0x21, 0x11, 0, 12], [0x20, 0],
  ]

  /// Makes a header, with the client that it names.
  private static func make(_ random: inout SeededGenerator) -> (bytes: [UInt8], client: IPAddress) {
    let isV4 = random.isOne(of: 2)
    let address: IPAddress =
      isV4
      ? .v4(.random(in: 0...(.max), using: &random))
      : .v6(
        high: .random(in: 0...(.max), using: &random), low: .random(in: 0...(.max), using: &random))
    if random.isOne(of: 2) {
      let target = isV4 ? "127.0.0.1" : "::1"
      let line =
        "PROXY \(isV4 ? "TCP4" : "TCP6") \(address) \(target) \(random.number(0...65_535)) 80\r\n"
      return (Array(line.utf8), address)
    }
    func bigEndian(_ number: UInt64, bytes: Int) -> [UInt8] {
      (0..<bytes).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * UInt64($0))) }
    }
    var rest: [UInt8]
    switch address {
    case .v4(let value): rest = bigEndian(UInt64(value), bytes: 4) + random.bytes(8)
    case .v6(let high, let low):
      rest = bigEndian(high, bytes: 8) + bigEndian(low, bytes: 8) + random.bytes(20)
    }
    rest += random.bytes(random.number(0...40))
    let head: [UInt8] = [0x21, isV4 ? 0x11 : 0x21] + bigEndian(UInt64(rest.count), bytes: 2)
    return (words[8] + head + rest, address)
  }

  @Test func `a written header is read back, and nothing behind it`() throws {
    var random = SeededGenerator(seed: 1)
    for _ in 0..<2_000 {
      let (bytes, client) = Self.make(&random)
      let expected = ProxyHeader.Reading.header(ProxyHeader(length: bytes.count, client: client))
      #expect(ProxyHeader.read(bytes + random.bytes(random.number(0...9))) == expected, "\(bytes)")
    }
  }

  @Test func `a damaged header ends the same way in pieces as at once, within its limit`() throws {
    var headers = 0
    var refused = 0
    try Fuzz.run(
      "proxy-header", usual: 3_000,
      make: { random in
        var bytes = Self.make(&random).bytes
        Damage.apply(to: &bytes, words: Self.words, using: &random)
        return bytes
      },
      check: { bytes in
        let whole = ProxyHeader.read(bytes)
        switch whole {
        case .header(let header):
          headers += 1
          try hold(header.length <= bytes.count, "\(header) is longer than its bytes")
          try hold(header.length <= ProxyHeader.longest, "\(header) is beyond the limit")
        case .invalid: refused += 1
        case .incomplete:
          try hold(bytes.count < ProxyHeader.longest, "\(bytes.count) bytes are not enough")
        }
        // The first piece that decides gives the result of all.
        for count in 0...bytes.count {
          let reading = ProxyHeader.read(Array(bytes[..<count]))
          guard reading != .incomplete else { continue }
          try hold(reading == whole, "\(count) bytes give \(reading), all \(whole)")
          break
        }
      })
    #expect(headers > 0 && refused > 0)
  }
}
