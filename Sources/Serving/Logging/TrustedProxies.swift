// TrustedProxies: determines a request's client address behind trusted proxies.

import CMicrohttpd
import Core
import Glibc
import Synchronization

/// A client as the proxies in front of it name it.
struct NamedClient: Equatable {
  /// The client's address; the nearest proxy's if none names a readable one; `nil`: a unix socket.
  let address: IPAddress?
  /// Whether `X-Forwarded-For` and `Forwarded` name different clients, so that the client may have
  /// written one of them. The address is then the proxy's.
  var isDisputed = false
}

/// The proxies that are trusted to name their clients, and the field in which they do.
///
/// Each proxy appends the address of its own client. Read from the right, the first address that is
/// not a trusted proxy's is the client's. Clients can invent everything in front of it.
public struct TrustedProxies: Sendable {
  /// The field that the proxies write.
  public typealias Field = ForwardedHeader

  /// The maximum number of proxies of a chain that are read.
  static let longestChain = 64

  /// Networks of the proxies. Without any, the client is the connected peer.
  public var networks: [CIDR] = []
  /// Whether peers of unix sockets are proxies, too.
  public var includesUnixSockets = false
  /// The field they write.
  public var field = Field.auto

  /// Trusts no proxy.
  public init() {}

  /// Returns the client, by its address.
  ///
  /// If a trusted proxy names no readable address (`unknown`, an obfuscated name, nothing), the
  /// result is the proxy's own address, and everything in front of it is ignored.
  ///
  /// - Parameters:
  ///   - peer: the address of the connected peer; `nil` for one of a unix socket.
  ///   - forwardedFor: the lines of `X-Forwarded-For`, in order.
  ///   - forwarded: the lines of `Forwarded`, in order.
  func client(
    of peer: IPAddress?, forwardedFor: [[UInt8]], forwarded: [[UInt8]]
  ) -> NamedClient {
    let peer = peer?.unmapped
    guard trusts(peer) else { return NamedClient(address: peer) }
    let byForwardedFor = {
      walk(from: peer, through: forwardedFor, hasQuotes: false, read: Self.listedAddress)
    }
    let byForwarded = {
      walk(from: peer, through: forwarded, hasQuotes: true, read: Self.forwardedAddress)
    }
    switch field {
    case .xForwardedFor: return NamedClient(address: byForwardedFor())
    case .forwarded: return NamedClient(address: byForwarded())
    case .auto:
      if forwarded.isEmpty { return NamedClient(address: byForwardedFor()) }
      if forwardedFor.isEmpty { return NamedClient(address: byForwarded()) }
      let client = byForwardedFor()
      return client == byForwarded()
        ? NamedClient(address: client) : NamedClient(address: peer, isDisputed: true)
    }
  }

  /// Whether an address is that of a proxy; `nil` for a unix socket. IPv4 addresses are unmapped.
  func trusts(_ address: IPAddress?) -> Bool {
    guard let address else { return includesUnixSockets }
    return networks.contains { $0.contains(address) }
  }

  /// Follows a chain from its end to the first address that is not trusted.
  private func walk(
    from peer: IPAddress?, through lines: [[UInt8]], hasQuotes: Bool,
    read: (ArraySlice<UInt8>) -> IPAddress?
  ) -> IPAddress? {
    var current = peer
    var hops = 0
    for line in lines.reversed() {
      var rest = line[...]
      while true {
        let comma = Self.lastComma(in: rest, hasQuotes: hasQuotes)
        let element = rest[(comma.map { $0 + 1 } ?? rest.startIndex)...].trimming { $0.isBlank }
        // Empty elements have no meaning (RFC 9110, section 5.6.1).
        if !element.isEmpty {
          guard hops < Self.longestChain, let address = read(element) else { return current }
          current = address.unmapped
          hops += 1
          guard trusts(current) else { return current }
        }
        guard let comma else { break }
        rest = rest[..<comma]
      }
    }
    return current
  }

  /// Returns the last comma outside of quotes. Searches from the end, which a trusted proxy wrote:
  /// a quotation that the client left open does not affect what follows it.
  private static func lastComma(in bytes: ArraySlice<UInt8>, hasQuotes: Bool) -> Int? {
    var isQuoted = false
    var index = bytes.endIndex
    while index > bytes.startIndex {
      index -= 1
      if hasQuotes, bytes[index] == UInt8(ascii: "\"") {
        let escapes = bytes[..<index].reversed().prefix { $0 == UInt8(ascii: "\\") }.count
        if !isQuoted || escapes % 2 == 0 { isQuoted.toggle() }
      } else if bytes[index] == UInt8(ascii: ","), !isQuoted {
        return index
      }
    }
    return nil
  }

  /// Returns the `for` of an element of `Forwarded`; `nil` unless exactly one is an address.
  private static func forwardedAddress(_ element: ArraySlice<UInt8>) -> IPAddress? {
    var rest = element
    var node: [UInt8]?
    while true {
      // A pair may be missing (RFC 7239, section 4).
      rest = rest.drop { $0.isBlank || $0 == UInt8(ascii: ";") }
      guard !rest.isEmpty else { break }
      guard let (name, value, after) = parameter(at: rest) else { return nil }
      if name == "for" {
        guard node == nil else { return nil }
        node = value
      }
      rest = after
    }
    return node.flatMap { address($0[...]) }
  }

  /// Parses a `name=value`, a token or a quoted string (RFC 9110, section 5.6), and its semicolon.
  ///
  /// A token may hold `:` and brackets, which many proxies write without quotes. It never holds a
  /// quote, because then the end of the element is uncertain.
  private static func parameter(
    at bytes: ArraySlice<UInt8>
  ) -> (name: String, value: [UInt8], rest: ArraySlice<UInt8>)? {
    guard let sign = bytes.firstIndex(of: UInt8(ascii: "=")) else { return nil }
    let token = bytes[..<sign].trimming { $0.isBlank }
    guard !token.contains(where: { $0.isBlank || "\";,".utf8.contains($0) }) else { return nil }
    let name = String(decoding: token, as: UTF8.self).lowercased()
    var index = sign + 1
    var value: [UInt8] = []
    if index < bytes.endIndex, bytes[index] == UInt8(ascii: "\"") {
      index += 1
      while index < bytes.endIndex, bytes[index] != UInt8(ascii: "\"") {
        if bytes[index] == UInt8(ascii: "\\") { index += 1 }
        guard index < bytes.endIndex else { return nil }
        value.append(bytes[index])
        index += 1
      }
      guard index < bytes.endIndex else { return nil }
      index += 1
    } else {
      let end = bytes[index...].firstIndex(of: UInt8(ascii: ";")) ?? bytes.endIndex
      value = Array(bytes[index..<end].trimming { $0.isBlank })
      guard !value.contains(UInt8(ascii: "\"")) else { return nil }
      index = end
    }
    let rest = bytes[index...].trimming { $0.isBlank }
    guard let first = rest.first else { return (name, value, rest) }
    return first == UInt8(ascii: ";") ? (name, value, rest.dropFirst()) : nil
  }

  /// Returns the address of an element of `X-Forwarded-For`. Ignores quotes around it.
  private static func listedAddress(_ element: ArraySlice<UInt8>) -> IPAddress? {
    let quote = UInt8(ascii: "\"")
    let isQuoted = element.count > 1 && element.first == quote && element.last == quote
    return address(isQuoted ? element.dropFirst().dropLast().trimming { $0.isBlank } : element)
  }

  /// Parses an address with an optional port; IPv6 may be in brackets (RFC 7239, section 6).
  private static func address(_ node: ArraySlice<UInt8>) -> IPAddress? {
    if node.first == UInt8(ascii: "[") {
      guard let end = node.firstIndex(of: UInt8(ascii: "]")), isPort(node[(end + 1)...]) else {
        return nil
      }
      return numeric(node[(node.startIndex + 1)..<end], isIPv6: true)
    }
    let colons = node.count { $0 == UInt8(ascii: ":") }
    guard colons == 1, let colon = node.firstIndex(of: UInt8(ascii: ":")) else {
      return numeric(node, isIPv6: colons > 0)
    }
    return isPort(node[colon...]) ? numeric(node[..<colon], isIPv6: false) : nil
  }

  private static func numeric(_ bytes: ArraySlice<UInt8>, isIPv6: Bool) -> IPAddress? {
    guard bytes.count < Int(INET6_ADDRSTRLEN), !bytes.contains(0),
      bytes.contains(UInt8(ascii: ":")) == isIPv6
    else { return nil }
    return IPAddress(String(decoding: bytes, as: UTF8.self))
  }

  /// Whether the text is empty, or a colon with a port: a number or an obfuscated name.
  private static func isPort(_ bytes: ArraySlice<UInt8>) -> Bool {
    guard let colon = bytes.first else { return true }
    let port = bytes.dropFirst()
    guard colon == UInt8(ascii: ":"), !port.isEmpty else { return false }
    let isNumber = port.count <= 5 && port.allSatisfy { $0.isDigit }
    return isNumber || port.first == UInt8(ascii: "_")
  }
}

/// Logs peers that name clients without being trusted, at most once an hour: all their clients
/// count as one.
final class UnlistedProxies: Sendable {
  private static let interval = 3_600_000
  /// When the next line is due, in monotonic milliseconds.
  private let dueAt = Atomic<Int>(.min)

  /// Logs the peer of a request with a forwarding field, if a line is due.
  func note(_ context: RequestContext) {
    let now = Clock.coarseMilliseconds()
    let due = dueAt.load(ordering: .relaxed)
    let peer = context.client.peer?.unmapped
    guard due <= now, !context.policy.trustedProxies.trusts(peer) else { return }
    for name: StaticString in ["X-Forwarded-For", "Forwarded"]
    where RequestHandler.field(name, on: context.connection) != nil
      && dueAt.compareExchange(expected: due, desired: now + Self.interval, ordering: .relaxed)
        .exchanged
    {
      context.handler.log.warning(
        "a peer that server.trusted_proxies does not list names its clients: they count as one",
        fields: ["client": .client(peer), "header": .string("\(name)")])
    }
  }
}
