// CountedClients: the clients whose connections and requests count, and what is one client.

import Platform

extension IPAddress {
  /// What counts as one client: an IPv4 address as it is, and the /64 of an IPv6 address, which is
  /// usually one subscriber's.
  var clientNetwork: IPAddress {
    switch unmapped {
    case .v6(let high, _): .v6(high: high, low: 0)
    case let other: other
    }
  }

  /// Whether the address is the machine's own (RFC 1122, section 3.2.1.3; RFC 4291, 2.5.3).
  var isLoopback: Bool {
    switch unmapped {
    case .v4(let value): value >> 24 == 127
    case .v6(let high, let low): high == 0 && low == 1
    }
  }
}

/// Which clients have a share of what the server can do at once.
///
/// Trusted proxies have none, because each speaks for many clients. The machine itself has none: a
/// proxy, a health check or a job of the operator.
struct CountedClients: Sendable {
  /// The proxies without a share.
  let proxies: TrustedProxies
  /// Whether clients of the machine itself have a share; for tests.
  var includesLoopback = false

  /// Returns the network that a client's share belongs to; `nil` without a share. Disputed clients
  /// of a proxy share that of its address, so that no field lets a client out of its limits.
  func network(of client: NamedClient) -> IPAddress? {
    client.isDisputed
      ? (client.address ?? .v4(0)).clientNetwork : network(of: client.address)
  }

  /// Does the same for an address that no proxy has named.
  func network(of address: IPAddress?) -> IPAddress? {
    guard let address = address?.unmapped, !proxies.trusts(address),
      includesLoopback || !address.isLoopback
    else { return nil }
    return address.clientNetwork
  }
}
