// ProxyHeader: takes the PROXY header off a connection before its requests are read.

import Core
import Glibc

/// A header of the PROXY protocol, version 1 or 2 (haproxy.org, doc/proxy-protocol.txt).
struct ProxyHeader: Hashable, Sendable {
  /// What the first bytes of a connection are.
  enum Reading: Hashable, Sendable {
    case header(ProxyHeader)
    /// A part of a header. Only more bytes can tell.
    case incomplete
    /// Not a header.
    case invalid
  }

  /// The maximum length of a header of version 1, with its line end (section 2.1).
  static let longestLine = 107
  /// The most bytes of a version 2 header here; with certificates it may have 65,551.
  static let longest = 4_096
  private static let lineStart = Array("PROXY ".utf8)
  private static let signature: [UInt8] = [
    0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a,
  ]
  /// The bytes in front of the addresses of version 2.
  private static let fixedLength = 16

  /// The header's length in bytes.
  let length: Int
  /// The proxy's client; `nil` if the proxy speaks for itself or names no IP address.
  let client: IPAddress?

  /// Reads the header at the beginning of a connection.
  static func read(_ bytes: [UInt8]) -> Reading {
    if starts(bytes, with: signature) { return readBinary(bytes) }
    if starts(bytes, with: lineStart) { return readLine(bytes) }
    return .invalid
  }

  /// Whether the bytes begin with a text, as far as they go.
  private static func starts(_ bytes: [UInt8], with text: [UInt8]) -> Bool {
    bytes.prefix(text.count).elementsEqual(text.prefix(bytes.count))
  }

  // MARK: Version 1

  private static func readLine(_ bytes: [UInt8]) -> Reading {
    let room = bytes.prefix(longestLine)
    guard let end = room.firstIndex(of: 0x0a) else {
      return bytes.count < longestLine ? .incomplete : .invalid
    }
    guard end > 0, bytes[end - 1] == 0x0d else { return .invalid }
    let line = bytes[..<(end - 1)]
    let words = line.split(separator: 0x20, omittingEmptySubsequences: false)
    let texts = words.map { String(decoding: $0, as: UTF8.self) }
    guard texts.count > 1 else { return .invalid }
    // The rest of such a line is ignored (section 2.1).
    if texts[1] == "UNKNOWN" { return .header(ProxyHeader(length: end + 1, client: nil)) }
    guard texts.count == 6, let source = IPAddress(texts[2]), let target = IPAddress(texts[3]),
      isPort(words[4]), isPort(words[5])
    else { return .invalid }
    switch (texts[1], source, target) {
    case ("TCP4", .v4, .v4), ("TCP6", .v6, .v6):
      return .header(ProxyHeader(length: end + 1, client: source))
    default: return .invalid
    }
  }

  private static func isPort(_ word: ArraySlice<UInt8>) -> Bool {
    guard (1...5).contains(word.count), word.allSatisfy(\.isDigit) else { return false }
    return word.reduce(0) { $0 * 10 + Int($1 - 0x30) } <= 65_535
  }

  // MARK: Version 2

  private static func readBinary(_ bytes: [UInt8]) -> Reading {
    guard bytes.count >= fixedLength else {
      // The version follows the signature.
      let version = bytes.count > signature.count ? bytes[signature.count] >> 4 : 2
      return version == 2 ? .incomplete : .invalid
    }
    let length = fixedLength + Int(bytes[14]) << 8 + Int(bytes[15])
    guard bytes[12] >> 4 == 2, length <= longest else { return .invalid }
    let isOwn = bytes[12] & 0xf == 0
    guard isOwn || bytes[12] & 0xf == 1, let room = room(of: bytes[13]) else { return .invalid }
    guard isOwn || length >= fixedLength + room else { return .invalid }
    guard bytes.count >= length else { return .incomplete }
    let addresses = bytes[fixedLength..<length]
    switch bytes[13] {
    case _ where isOwn: return .header(ProxyHeader(length: length, client: nil))
    case 0x11:
      let source = UInt32(truncatingIfNeeded: number(addresses.prefix(4)))
      return .header(ProxyHeader(length: length, client: .v4(source)))
    case 0x21:
      let high = number(addresses.prefix(8))
      let low = number(addresses.dropFirst(8).prefix(8))
      return .header(ProxyHeader(length: length, client: .v6(high: high, low: low)))
    default: return .header(ProxyHeader(length: length, client: nil))
    }
  }

  /// Returns the bytes of a family's and transport's addresses; `nil` if unknown or datagrams.
  private static func room(of family: UInt8) -> Int? {
    switch family {
    case 0x00: 0
    case 0x11: 12
    case 0x21: 36
    case 0x31: 216
    default: nil
    }
  }

  private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
    bytes.reduce(0) { $0 << 8 | UInt64($1) }
  }
}

extension RequestPolicy {
  /// Whether a connection begins with a PROXY header: only trusted proxies may and must send one.
  func expectsProxyHeader(from peer: IPAddress?) -> Bool {
    configuration.proxyProtocol && trustedProxies.trusts(peer?.unmapped)
  }
}

extension RequestHandler {
  /// Takes the header off the received bytes, and counts the connection as its client's. Returns
  /// the number of bytes behind it, moved to the beginning; 0 while it is incomplete.
  ///
  /// - Throws: `malformedRequest` without a header, `rateLimited` if the client has its share.
  func takeProxyHeader(
    off buffer: UnsafeMutableRawBufferPointer, of client: Connection
  ) throws(ImageError) -> Int {
    let earlier = client.proxyHeader ?? []
    let bytes = earlier + UnsafeRawBufferPointer(buffer)
    switch ProxyHeader.read(bytes) {
    case .invalid: throw .malformedRequest("the connection does not begin with a PROXY header")
    case .incomplete:
      client.proxyHeader = bytes
      return 0
    case .header(let header):
      client.proxyHeader = nil
      if let named = header.client {
        client.peer = named
        guard monitor.connections.assign(client.watch, to: named) else {
          throw ConnectionRefusal.error
        }
      }
      let taken = header.length - earlier.count
      let rest = buffer.count - taken
      guard let start = buffer.baseAddress else { return 0 }
      memmove(start, start + taken, rest)
      // libmicrohttpd takes a count below its buffer's length for the end, and would wait for more.
      let more = recvfrom(client.watch.descriptor, start + rest, taken, 0, nil, nil)
      return rest + max(more, 0)
    }
  }
}
