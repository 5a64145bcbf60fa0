// HostPattern: matches one or many hosts, for the allow list and for host rules.

/// A pattern for host names: `images.example.com`, `*.example.com` for all subdomains, or `*` for
/// all hosts.
///
/// Names are compared in normalized form: lower case, no trailing dot, international names in ASCII
/// form. `*.example.com` matches `a.example.com` and `a.b.example.com`, but not `example.com`.
public struct HostPattern: Hashable, Sendable, CustomStringConvertible {
  private let name: String
  private let matchesBelow: Bool

  /// The pattern of all hosts, `*`.
  public static let all = HostPattern()

  private init() {
    name = ""
    matchesBelow = true
  }

  /// Parses a pattern. Returns `nil` if the text is empty or contains anything but letters, digits,
  /// `-`, `_`, `.` and `:`. `*` is only valid alone or as a leading `*.`.
  public init?(_ text: String) {
    guard text != "*" else {
      self = .all
      return
    }
    matchesBelow = text.hasPrefix("*.")
    name = Self.normalized(matchesBelow ? String(text.dropFirst(2)) : text)
    guard name.isPlain(with: "-.:_"), !name.isEmpty, !name.hasPrefix("."), !name.contains("..")
    else { return nil }
  }

  /// Returns whether the pattern matches `host`.
  public func matches(_ host: String) -> Bool {
    if name.isEmpty { return true }
    let host = Self.normalized(host)
    return matchesBelow ? host.hasSuffix("." + name) : host == name
  }

  /// The normalized pattern.
  public var description: String {
    name.isEmpty ? "*" : matchesBelow ? "*." + name : name
  }

  /// Returns a host in normalized form: lower case, without brackets and trailing dot.
  /// `EXAMPLE.com.` becomes `example.com`.
  public static func normalized(_ host: String) -> String {
    var host = host.lowercased()
    if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
    if host.hasSuffix(".") { host.removeLast() }
    return host
  }
}
