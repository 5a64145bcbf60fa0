// HostPolicy: the hosts, ports and paths that downloads may use, by name.

import Model

/// The operator's allow and deny lists of sources, and the ports. Each hop of a load is checked by the
/// name that is connected to, the port and the path.
///
/// Another name may lead to a denied host's address; `AddressPolicy` checks addresses.
public struct HostPolicy: Sendable {
  /// Allowed sources; empty: all. A pattern with a port also allows a port outside of `ports`.
  public var allowed: [SourcePattern]
  /// Denied sources; takes precedence over `allowed`.
  public var denied: [SourcePattern]
  /// Ports that may be used.
  public var ports: [PortRange]

  /// Creates a policy; by default all hosts and ports are allowed.
  public init(
    allowed: [SourcePattern] = [], denied: [SourcePattern] = [], ports: [PortRange] = []
  ) {
    self.allowed = allowed
    self.denied = denied
    self.ports = ports
  }

  /// Checks a source.
  ///
  /// - Parameters:
  ///   - host: the host in the form of `DownloadTarget.host`.
  ///   - port: the port, given or the scheme's default.
  ///   - path: the percent-encoded path.
  /// - Throws: `ImageError.forbiddenSource` for a source that is denied or not allowed.
  func check(host: String, port: Int, path: String) throws(ImageError) {
    let reading = PathReading(path)
    if let pattern = denied.first(where: { $0.touches(host: host, port: port, path: reading) }) {
      throw .forbiddenSource(
        reason: "its \(pattern.isOfWholeHosts ? "host" : "port or path") is on the deny list",
        detail: pattern.isOfWholeHosts ? host : "\(host):\(port)\(path) (\(pattern))",
        key: "download.deny_hosts")
    }
    let matching = allowed.filter { $0.covers(host: host, port: port, path: reading) }
    guard allowed.isEmpty || !matching.isEmpty else {
      let isKnown = allowed.contains { $0.host.matches(host) }
      throw .forbiddenSource(
        reason: "its \(isKnown ? "port or path" : "host") is not on the allow list",
        detail: isKnown ? "\(host):\(port)\(path)" : host, key: "download.allow_hosts")
    }
    guard
      ports.isEmpty || ports.contains(where: { $0.ports.contains(port) })
        || matching.contains(where: { $0.port == port })
    else {
      throw .forbiddenSource(
        reason: "port \(port) is not allowed", detail: "\(host):\(port)", key: "download.ports")
    }
  }
}
