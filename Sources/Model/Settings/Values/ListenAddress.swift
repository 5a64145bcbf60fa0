// ListenAddress: an IP address with a port that a listener binds.

import Platform

/// An IP address and a port to listen on.
public struct ListenAddress: Hashable, Sendable, CustomStringConvertible {
  /// The address where only a port is given.
  public static let loopback = "127.0.0.1"

  /// A numeric IPv4 or IPv6 address, without brackets.
  public let host: String
  /// The port, 0–65535; 0 selects a free port.
  public let port: Int

  /// Creates an address from its parts.
  public init(host: String, port: Int) {
    self.host = host
    self.port = port
  }

  /// Parses `9090` (on loopback), `10.0.0.1:9090` or `[::1]:9090`. Returns `nil` for other texts, such
  /// as a host name, an address without a port, or a port above 65535.
  public init?(_ text: String) {
    guard let colon = text.lastIndex(of: ":") else {
      guard let port = Self.port(text[...]) else { return nil }
      self.init(host: Self.loopback, port: port)
      return
    }
    guard let port = Self.port(text[text.index(after: colon)...]) else { return nil }
    let host = text[..<colon]
    let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
    let address = String(isBracketed ? host.dropFirst().dropLast() : host)
    switch IPAddress(address) {
    case .v4? where !isBracketed: break
    case .v6? where isBracketed: break
    default: return nil
    }
    self.init(host: address, port: port)
  }

  private static func port(_ text: Substring) -> Int? {
    guard (1...5).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
      let port = Int(text), port <= 65_535
    else { return nil }
    return port
  }

  /// The form that is parsed, always with the address.
  public var description: String {
    host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
  }

  /// Whether two listeners cannot have both addresses: the port is the same, and the addresses are the
  /// same or one covers the other. A socket on `::` may also cover IPv4.
  public func overlaps(_ other: ListenAddress) -> Bool {
    guard port == other.port, port != 0 else { return false }
    guard let own = IPAddress(host)?.unmapped, let others = IPAddress(other.host)?.unmapped else {
      return host == other.host
    }
    switch (own, others) {
    case (.v6(0, 0), _), (_, .v6(0, 0)): return true
    case (.v4(0), .v4), (.v4, .v4(0)): return true
    default: return own == others
    }
  }
}
