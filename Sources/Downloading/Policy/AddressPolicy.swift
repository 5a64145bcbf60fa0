// AddressPolicy: the addresses that downloads of untrusted URLs may connect to.

import CCurl
import Core
import Glibc

/// Allows public addresses, and other addresses that the operator lists
/// (`download.allow_networks`).
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

  fileprivate typealias Reserved = (network: CIDR, name: String)

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

  fileprivate static func table(_ rows: [(String, String)]) -> [Reserved] {
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

/// The metadata and platform endpoints of clouds. They trust every request from the machine, so a
/// download to them gives away its credentials.
///
/// Some lie in public ranges, others in ranges that operators allow for reasons of their own
/// (`100.64.0.0/10` for Tailscale, `fd00::/8`). Only a network inside the endpoint's own allows it:
/// `0.0.0.0/0` does not, `169.254.169.254/32` does.
enum CloudEndpoints {
  /// Returns why `address` is refused; `nil` if it is no endpoint, or `networks` name the endpoint.
  ///
  /// An endpoint embedded in an IPv6 address is allowed by naming the endpoint, or that IPv6
  /// address.
  static func refusal(of address: IPAddress, allowing networks: [CIDR]) -> String? {
    let isNamed = networks.contains {
      guard case .v6 = $0.address else { return false }
      return $0.prefix == 128 && $0.contains(address)
    }
    if isNamed { return nil }
    for inner in [address] + address.embeddedIPv4 + address.locallyTranslatedIPv4 {
      for (endpoint, name) in all where endpoint.contains(inner) {
        let isAllowed = networks.contains { $0.contains(inner) && $0.isInside(endpoint) }
        guard !isAllowed else { continue }
        return inner == address ? "\(address) (\(name))" : "\(address) (\(inner): \(name))"
      }
    }
    return nil
  }

  /// The endpoints with their names. Sources: each platform's documentation of its metadata
  /// service.
  private static let all = AddressPolicy.table([
    // AWS, Azure, Google, Oracle, DigitalOcean, Hetzner, OpenStack: 169.254.169.254. Task
    // credentials of AWS: 169.254.170.2 and .23. Tencent: 169.254.0.23. Scaleway: 169.254.42.42.
    ("169.254.0.0/16", "link-local, cloud metadata"), ("168.63.129.16/32", "Azure platform"),
    ("100.100.100.200/32", "Alibaba metadata"), ("192.0.0.192/32", "Oracle metadata"),
    ("161.26.0.0/16", "IBM Cloud services"), ("166.8.0.0/14", "IBM Cloud services"),
    ("fd00:ec2::/32", "AWS metadata"), ("fd20:ce::254/128", "Google metadata"),
    ("fd00:42::42/128", "Scaleway metadata"), ("fd00:c1::a9fe:a9fe/128", "Oracle metadata"),
  ])
}

/// The server's own listening addresses. No origin has one of them.
///
/// It covers the addresses of this machine. An address that leads back through another machine,
/// such as a load balancer, is recognized by `CDN-Loop` only.
final class OwnEndpoint: Sendable {
  private struct Place {
    let address: IPAddress
    let port: Int
    /// Whether the address is `::` for IPv6 only.
    let isIPv6Only: Bool
  }

  private let places = Lock<[Place]>([])

  /// Creates an endpoint that does not listen yet.
  init() {}

  /// Sets the listening addresses. One with port 0, or that is not numeric, counts as none. No
  /// download reaches a unix socket.
  func set(_ addresses: [ListenAddress]) {
    let all = addresses.compactMap { address -> Place? in
      guard let ip = address.ip, let port = address.port else { return nil }
      return Place(address: ip, port: port, isIPv6Only: address.isIPv6Only(beside: addresses))
    }
    places.withLock { $0 = all.filter { $0.port != 0 } }
  }

  /// Whether this server would accept a connection to this address.
  func isReached(by address: IPAddress, port: Int) -> Bool {
    let own = places.withLock { $0 }.filter { $0.port == port }
    guard !own.isEmpty else { return false }
    let address = Self.destination(of: address.unmapped)
    return own.contains { place in
      if address == place.address { return true }
      switch (place.address, address) {
      // A socket on :: also accepts IPv4.
      case (.v6(0, 0), .v4) where place.isIPv6Only: return false
      case (.v6(0, 0), _), (.v4(0), .v4): return Self.isOfThisMachine(address)
      default: return false
      }
    }
  }

  /// Linux connects to this machine if the destination is the unspecified address.
  private static func destination(of address: IPAddress) -> IPAddress {
    switch address {
    case .v4(0): .v4(0x7f00_0001)
    case .v6(0, 0): .v6(high: 0, low: 1)
    default: address
    }
  }

  /// Whether this machine has the address now: the kernel then sends to it from the same address.
  /// Sends nothing.
  private static func isOfThisMachine(_ address: IPAddress) -> Bool {
    if case .v4(let value) = address, value >> 24 == 127 { return true }
    var hints = addrinfo()
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV
    hints.ai_socktype = CInt(SOCK_DGRAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo("\(address)", "9", &hints, &list) == 0, let there = list?.pointee else {
      return false
    }
    defer { freeaddrinfo(list) }
    let kind = there.ai_socktype | CInt(SOCK_CLOEXEC.rawValue)
    let probe = OwnedDescriptor(owning: socket(there.ai_family, kind, 0))
    // Connecting a datagram socket only looks the way up.
    guard connect(probe.value, there.ai_addr, there.ai_addrlen) == 0 else { return false }
    var source = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let status = withUnsafeMutablePointer(to: &source) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        getsockname(probe.value, $0, &length)
      }
    }
    return status == 0
      && withUnsafeBytes(of: source) { bytes in
        bytes.baseAddress.flatMap { IPAddress($0, length: Int(length)) } == address
      }
  }
}

extension TransferRules {
  /// Returns why a connection to `address` is refused; `nil` if it is allowed.
  ///
  /// To clients, a name whose address is refused looks like a name that does not exist. Otherwise
  /// they could find out the names of a private network. The one exception is this server itself at
  /// an address that is not refused otherwise.
  ///
  /// Reads curl's own structure: an IPv6 address is longer than the `sockaddr` in a copy of it.
  func refusal(
    of address: UnsafePointer<curl_sockaddr>, for target: DownloadTarget
  ) -> ImageError? {
    guard let ip = Self.ip(of: address)
    else { return .refused("the address is not an IP address", isNamed: target.isNamed) }
    return refusal(of: ip, for: target)
  }

  /// Does the same for an address that curl does not connect to, or is connected to already.
  func refusal(of ip: IPAddress, for target: DownloadTarget) -> ImageError? {
    let refusal = addresses.refusal(of: ip)
    if let refusal, target.isNamed { return .refused(refusal, isNamed: true) }
    // The server's own address is refused even if its network is allowed.
    if own.isReached(by: ip, port: target.url.port) {
      return .forbiddenSource(
        reason: "it is this server itself", detail: "\(ip), port \(target.url.port)")
    }
    return refusal.map { .refused($0, isNamed: false) }
  }

  /// Returns an address with the target's port, for operators.
  func text(of address: UnsafePointer<curl_sockaddr>, for target: DownloadTarget) -> String {
    "\(Self.ip(of: address)?.description ?? "?") port \(target.url.port)"
  }

  private static func ip(of address: UnsafePointer<curl_sockaddr>) -> IPAddress? {
    guard let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr) else { return nil }
    return IPAddress(UnsafeRawPointer(address) + offset, length: Int(address.pointee.addrlen))
  }
}
