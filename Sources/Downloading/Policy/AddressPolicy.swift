// AddressPolicy: the addresses that downloads of untrusted URLs may connect to.

import Model
import Platform

/// Allows public addresses, and other addresses that the operator lists (`download.allow_networks`).
///
/// Checks the address of each socket instead of names, so no spelling of a host can bypass it
/// (`127.1`, `0x7f000001`, names that resolve to private addresses, redirects). Refused are:
/// - multicast, and the ranges of IANA's special-purpose registries (RFC 6890 and its updates) that
///   are not globally reachable
/// - IPv6 addresses outside global unicast, `2000::/3`
/// - IPv6 addresses with an embedded IPv4 address that is refused
/// - endpoints of cloud platforms (`CloudEndpoints`), even inside an allowed network that is wider.
public struct AddressPolicy: Sendable {
  /// Networks that are allowed although they are not public.
  public let allowedNetworks: [CIDR]

  /// Creates a policy that allows public addresses and these networks.
  public init(allowedNetworks: [CIDR] = []) { self.allowedNetworks = allowedNetworks }

  /// Returns why `address` is refused, or `nil` if it is allowed.
  ///
  /// An allowed network matches the address itself, or all IPv4 addresses embedded in it: allowing
  /// `10.0.0.0/8` also allows `::ffff:10.0.0.1`.
  public func refusal(of address: IPAddress) -> String? {
    if let refusal = CloudEndpoints.refusal(of: address, allowing: allowedNetworks) {
      return refusal
    }
    func isAllowed(_ address: IPAddress) -> Bool {
      allowedNetworks.contains { $0.contains(address) }
    }
    if isAllowed(address) { return nil }
    let embedded = address.embeddedIPv4
    if !embedded.isEmpty, embedded.allSatisfy(isAllowed) { return nil }

    for inner in embedded where !isAllowed(inner) {
      if let name = Self.reservedName(of: inner) { return "\(address) (\(inner): \(name))" }
    }
    return Self.reservedName(of: address).map { "\(address) (\($0))" }
  }

  /// Returns the name of the reserved range of `address`, ignoring embedded IPv4; `nil` for a
  /// public address.
  private static func reservedName(of address: IPAddress) -> String? {
    switch address {
    case .v4:
      return reservedIPv4.first { $0.network.contains(address) }?.name
    case .v6(let high, _):
      if let known = reservedIPv6.first(where: { $0.network.contains(address) }) {
        return known.name
      }
      let isTranslated = translations.contains { $0.contains(address) }
      return high >> 61 == 1 || isTranslated ? nil : "not global unicast"
    }
  }

  private typealias Reserved = (network: CIDR, name: String)

  private static let reservedIPv4: [Reserved] = table([
    ("0.0.0.0/8", "this network"), ("10.0.0.0/8", "private"), ("100.64.0.0/10", "carrier NAT"),
    ("127.0.0.0/8", "loopback"), ("169.254.0.0/16", "link-local"), ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "protocol assignments"), ("192.0.2.0/24", "documentation"),
    ("192.88.99.0/24", "6to4 relays"), ("192.168.0.0/16", "private"),
    ("198.18.0.0/15", "benchmarking"), ("198.51.100.0/24", "documentation"),
    ("203.0.113.0/24", "documentation"), ("224.0.0.0/4", "multicast"),
    ("255.255.255.255/32", "broadcast"), ("240.0.0.0/4", "reserved"),
  ])

  private static let reservedIPv6: [Reserved] = table([
    ("::/128", "unspecified"), ("::1/128", "loopback"), ("::/96", "IPv4-compatible"),
    ("64:ff9b:1::/48", "local NAT64"), ("100::/64", "discard"), ("2001::/32", "Teredo"),
    ("2001::/23", "protocol assignments"), ("2001:db8::/32", "documentation"),
    ("3fff::/20", "documentation"), ("5f00::/16", "segment routing"), ("fc00::/7", "unique local"),
    ("fe80::/10", "link-local"), ("fec0::/10", "site-local"), ("ff00::/8", "multicast"),
  ])

  /// Prefixes outside `2000::/3` that embed IPv4 addresses; they are as public as those.
  private static let translations = table([
    ("::ffff:0:0/96", "mapped"), ("::ffff:0:0:0/96", "translated"), ("64:ff9b::/96", "NAT64"),
  ]).map(\.network)

  private static func table(_ rows: [(String, String)]) -> [Reserved] {
    rows.map { text, name in
      guard let network = CIDR(text) else { preconditionFailure("\(text) is no network") }
      return (network, name)
    }
  }
}

extension ImageError {
  /// The failure of a load whose address is refused. `refusal` is the reason, for operators.
  static func refused(_ refusal: String, isNamed: Bool) -> ImageError {
    let key = "download.allow_networks"
    return isNamed
      ? .sourceUnreachable(detail: "its address is not allowed: \(refusal)", key: key)
      : .forbiddenSource(reason: "its address is not allowed", detail: refusal, key: key)
  }
}
