// HostPolicy: the hosts that downloads may use, by name.

import Model

/// The operator's allow and deny lists of hosts. Each hop of a load is checked by the name that is
/// connected to.
///
/// Another name may lead to a denied host's address; `AddressPolicy` checks addresses.
public struct HostPolicy: Sendable {
  /// Allowed hosts; empty: all.
  public var allowed: [HostPattern]
  /// Denied hosts; takes precedence over `allowed`.
  public var denied: [HostPattern]

  /// Creates a policy; by default all hosts are allowed.
  public init(allowed: [HostPattern] = [], denied: [HostPattern] = []) {
    self.allowed = allowed
    self.denied = denied
  }

  /// Checks a host.
  ///
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
