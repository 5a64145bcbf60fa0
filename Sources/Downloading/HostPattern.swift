// HostPattern: one entry of the allow list of hosts.

/// A host by name, or with `*.` in front all hosts below one: `images.example.com`, `*.example.com`.
///
/// Names are compared as the downloader connects to them: in lower case, without a dot at the end, international
/// names in their ASCII form. `*.example.com` matches `a.example.com` and `a.b.example.com`, not `example.com`.
public struct HostPattern: Hashable, Sendable, CustomStringConvertible {
  private let name: String
  private let matchesBelow: Bool

  /// Parses a pattern; `nil` where it is empty, holds anything but letters, digits, `-`, `_`, `.` and `:`, or a `*`
  /// elsewhere than in a leading `*.`.
  public init?(_ text: String) {
    matchesBelow = text.hasPrefix("*.")
    name = Self.normalized(matchesBelow ? String(text.dropFirst(2)) : text)
    let isName = name.utf8.allSatisfy { byte in
      switch byte {
      case 0x61...0x7a, 0x30...0x39, 0x2d, 0x2e, 0x3a, 0x5f: true
      default: false
      }
    }
    guard isName, !name.isEmpty, !name.hasPrefix("."), !name.contains("..") else { return nil }
  }

  /// Whether the pattern covers `host`.
  public func matches(_ host: String) -> Bool {
    let host = Self.normalized(host)
    return matchesBelow ? host.hasSuffix("." + name) : host == name
  }

  /// The pattern as it is compared.
  public var description: String { matchesBelow ? "*." + name : name }

  /// Lower case, no brackets, no final dot: `EXAMPLE.com.` names the same host as `example.com`.
  static func normalized(_ host: String) -> String {
    var host = host.lowercased()
    if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
    if host.hasSuffix(".") { host.removeLast() }
    return host
  }
}
