// ProxyHeaderFuzzTests: the PROXY protocol's header, written and read back, damaged and in pieces.

import Platform
import TestSupport
import Testing

@testable import Serving

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
