// ListenAddress: where a listener accepts connections: an IP address with a port, or a unix socket.

/// An address to listen on.
public enum ListenAddress: Hashable, Sendable, CustomStringConvertible {
  /// A numeric IPv4 or IPv6 address without brackets, and a port, 0–65535; 0 selects a free port.
  case network(host: String, port: Int)
  /// The absolute path of a unix socket (unix(7)).
  case unix(path: String)

  /// The address where only a port is given.
  public static let loopback = "127.0.0.1"
  /// What a unix socket's path follows.
  public static let unixPrefix = "unix:"
  /// The maximum bytes of a unix socket's path; `sun_path` has one more for its end.
  static let longestPath = 107

  /// Creates a network address from its parts.
  public init(host: String, port: Int) { self = .network(host: host, port: port) }

  /// Parses `9090` (on loopback), `10.0.0.1:9090`, `[::1]:9090` or `unix:/run/pictor.sock`. Returns
  /// `nil` for other texts, such as a host name, an address without a port, or a relative path.
  public init?(_ text: String) {
    if text.hasPrefix(Self.unixPrefix) {
      let path = String(text.dropFirst(Self.unixPrefix.count))
      guard path.hasPrefix("/"), !path.hasSuffix("/"), path.utf8.count <= Self.longestPath,
        !path.utf8.contains(0)
      else { return nil }
      self = .unix(path: path)
      return
    }
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
    guard text.utf8.count <= 5, text.isDigits, let port = Int(text), port <= 65_535 else {
      return nil
    }
    return port
  }

  /// The form that is parsed, always with the address.
  public var description: String {
    switch self {
    case .network(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    case .unix(let path): Self.unixPrefix + path
    }
  }

  /// The port; `nil` for a unix socket.
  public var port: Int? {
    if case .network(_, let port) = self { port } else { nil }
  }

  /// The IP address; `nil` for a unix socket, and for a form of getaddrinfo(3) such as `127.1`.
  public var ip: IPAddress? {
    if case .network(let host, _) = self { IPAddress(host)?.unmapped } else { nil }
  }

  /// Whether clients and operators cannot have both addresses: the ports are the same, and the
  /// addresses too, or one covers the other. A socket on `::` also covers IPv4.
  public func overlaps(_ other: ListenAddress) -> Bool {
    guard case .network(let host, let port) = self,
      case .network(let otherHost, let otherPort) = other
    else { return self == other }
    guard port == otherPort, port != 0 else { return false }
    guard let ip, let otherIP = other.ip else { return host == otherHost }
    switch (ip, otherIP) {
    case (.v6(0, 0), _), (_, .v6(0, 0)): return true
    case (.v4(0), .v4), (.v4, .v4(0)): return true
    default: return ip == otherIP
    }
  }

  /// Whether one listener cannot have both. Beside IPv4, its socket on `::` takes IPv6 only.
  public func excludes(_ other: ListenAddress) -> Bool {
    overlaps(other) && !isIPv6Only(beside: [other]) && !other.isIPv6Only(beside: [self])
  }

  /// Whether a socket on this address has to leave IPv4 to another address of the same listener:
  /// this one is `::`, and another one has IPv4 on the same port.
  public func isIPv6Only(beside others: [ListenAddress]) -> Bool {
    guard let port, port != 0, case .v6(0, 0)? = ip else { return false }
    return others.contains { other in
      guard other.port == port, case .v4? = other.ip else { return false }
      return true
    }
  }

  /// The address at which this machine reaches the listener: loopback for all interfaces.
  public var reachable: ListenAddress {
    switch (self, ip) {
    case (.network(_, let port), .v4(0)?): .network(host: Self.loopback, port: port)
    case (.network(_, let port), .v6(0, 0)?): .network(host: "::1", port: port)
    default: self
    }
  }
}

/// An item of `server.address`.
public enum ListenItem: Hashable, Sendable, CustomStringConvertible {
  /// A numeric address in a form of getaddrinfo(3), with the port of `server.port`.
  case host(String)
  /// An address with a port of its own, or a unix socket.
  case address(ListenAddress)

  /// Returns the address.
  ///
  /// - Parameter port: that of `server.port`.
  public func resolved(port: Int) -> ListenAddress {
    switch self {
    case .host(let host): .network(host: host, port: port)
    case .address(let address): address
    }
  }

  /// The form of the configuration.
  public var description: String {
    switch self {
    case .host(let host): host
    case .address(let address): address.description
    }
  }
}
