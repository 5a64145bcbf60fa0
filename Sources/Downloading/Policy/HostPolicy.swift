// HostPolicy: which hosts may be asked, by name.

import Model

/// The operator's two lists of hosts. Each hop of a load is checked, by the name that is connected to.
///
/// Names say nothing of addresses: another name may lead to a denied host's address. `AddressPolicy` checks addresses.
public struct HostPolicy: Sendable {
  /// Hosts that may be asked; empty: all.
  public var allowed: [HostPattern]
  /// Hosts that may not be asked, whatever `allowed` says.
  public var denied: [HostPattern]

  /// All hosts, unless lists say otherwise.
  public init(allowed: [HostPattern] = [], denied: [HostPattern] = []) {
    self.allowed = allowed
    self.denied = denied
  }

  /// - Throws: `ImageError.forbiddenSource` for a host that is denied or not allowed.
  func check(_ host: String) throws(ImageError) {
    guard !denied.contains(where: { $0.matches(host) }) else {
      throw .forbiddenSource(
        reason: "its host is on the deny list", detail: host, key: "download.deny_hosts")
    }
    guard allowed.isEmpty || allowed.contains(where: { $0.matches(host) }) else {
      throw .forbiddenSource(
        reason: "its host is not on the allow list", detail: host, key: "download.allow_hosts")
    }
  }
}
