// HostPattern: one or many hosts by name, as the allow list and the rules of hosts name them.

/// A host by name, with `*.` in front all hosts below one, or `*` for all: `images.example.com`, `*.example.com`.
///
/// Names are compared as the downloader connects to them: in lower case, without a dot at the end, international
/// names in their ASCII form. `*.example.com` matches `a.example.com` and `a.b.example.com`, not `example.com`.
public struct HostPattern: Hashable, Sendable, CustomStringConvertible {
  private let name: String
  private let matchesBelow: Bool

  /// Parses a pattern; `nil` where it is empty, holds anything but letters, digits, `-`, `_`, `.` and `:`, or a `*`
  /// elsewhere than in a leading `*.` or alone.
  public init?(_ text: String) {
    guard text != "*" else {
      (name, matchesBelow) = ("", true)
      return
    }
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
    if name.isEmpty { return true }
    let host = Self.normalized(host)
    return matchesBelow ? host.hasSuffix("." + name) : host == name
  }

  /// The pattern as it is compared.
  public var description: String {
    name.isEmpty ? "*" : matchesBelow ? "*." + name : name
  }

  /// A host as names are compared: lower case, no brackets, no final dot. `EXAMPLE.com.` names the same host as
  /// `example.com`.
  public static func normalized(_ host: String) -> String {
    var host = host.lowercased()
    if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
    if host.hasSuffix(".") { host.removeLast() }
    return host
  }
}
