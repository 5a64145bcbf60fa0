// CloudEndpoints: addresses at which cloud platforms serve credentials and control to their machines.

import Model
import Platform

/// The metadata and platform endpoints of clouds. They trust every request from the machine, so a
/// download to them gives away its credentials.
///
/// Some lie in public ranges, others in ranges that operators allow for reasons of their own
/// (`100.64.0.0/10` for Tailscale, `fd00::/8`). Only a network inside the endpoint's own allows it:
/// `0.0.0.0/0` does not, `169.254.169.254/32` does.
enum CloudEndpoints {
  /// Returns why `address` is refused; `nil` if it is no endpoint, or `networks` name the endpoint.
  ///
  /// An endpoint embedded in an IPv6 address is allowed by naming the endpoint, or that IPv6 address.
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

  /// The endpoints with their names. Sources: each platform's documentation of its metadata service.
  private static let all: [(network: CIDR, name: String)] = [
    // AWS, Azure, Google, Oracle, DigitalOcean, Hetzner, OpenStack: 169.254.169.254. Task credentials of
    // AWS: 169.254.170.2 and .23. Tencent: 169.254.0.23. Scaleway: 169.254.42.42.
    ("169.254.0.0/16", "link-local, cloud metadata"), ("168.63.129.16/32", "Azure platform"),
    ("100.100.100.200/32", "Alibaba metadata"), ("192.0.0.192/32", "Oracle metadata"),
    ("161.26.0.0/16", "IBM Cloud services"), ("166.8.0.0/14", "IBM Cloud services"),
    ("fd00:ec2::/32", "AWS metadata"), ("fd20:ce::254/128", "Google metadata"),
    ("fd00:42::42/128", "Scaleway metadata"), ("fd00:c1::a9fe:a9fe/128", "Oracle metadata"),
  ].map { text, name in
    guard let network = CIDR(text) else { preconditionFailure("\(text) is no network") }
    return (network, name)
  }
}
