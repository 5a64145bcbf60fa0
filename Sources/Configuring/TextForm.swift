// TextForm: the forms of texts in settings: names, addresses, networks, patterns, origins.

/// Validates the form of texts.
enum TextForm {
  @Sendable static func isNetwork(_ text: String) -> Bool {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count <= 2, let address = parts.first, !address.isEmpty else { return false }
    let isIPv6 = address.contains(":")
    let digits: Set<Character> = Set(isIPv6 ? "0123456789abcdefABCDEF:." : "0123456789.")
    guard address.allSatisfy(digits.contains) else { return false }
    guard parts.count == 2 else { return true }
    return Int(parts[1]).map { (0...(isIPv6 ? 128 : 32)).contains($0) } ?? false
  }

  /// Accepts what has the form of a pattern. `SourcePattern` finds the other mistakes.
  @Sendable static func isSourcePattern(_ text: String) -> Bool {
    let host = text.prefix { $0 != "/" }
    let name = host == "*" || host.hasPrefix("*.") || host.hasPrefix("*:") ? host.dropFirst() : host
    // Brackets surround an IPv6 address; others are of a list that is not closed.
    let hasBrackets = host.contains("[") || host.contains("]")
    let isBracketed =
      host.hasPrefix("[") && host.contains("]") && host.dropFirst().count { "[]".contains($0) } == 1
    return !host.isEmpty && !host.hasSuffix(":") && !name.contains("*")
      && (!hasBrackets || isBracketed)
      && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && !"?#@\\{}\"'".utf8.contains($0) }
  }

  /// Whether a text is an origin as browsers send it in `Origin` (RFC 6454, section 6.2), or `*`:
  /// scheme, host and a port other than the scheme's. Other forms would never match.
  static func isWebOrigin(_ text: String) -> Bool {
    guard text != "*" else { return true }
    let scheme = text.prefix { $0 != ":" }
    guard !scheme.isEmpty, text.dropFirst(scheme.count).hasPrefix("://") else { return false }
    let rest = text.dropFirst(scheme.count + "://".count)
    return text == text.lowercased() && scheme.isPlain(with: "+-.")
      && !rest.isEmpty && rest.first != ":" && rest.isPlain(with: "-._~:[]")
      && !(scheme == "https" && rest.hasSuffix(":443") || scheme == "http" && rest.hasSuffix(":80"))
  }

  /// Whether a text is a URL that spans can be sent to. It is used as it is, not normalized.
  @Sendable static func isCollector(_ text: String) -> Bool {
    guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }), text.utf8.count <= 2_048,
      !text.contains("#"), let url = try? SourceURL(parsing: text), url.scheme.isHTTP,
      text.hasPrefix("\(url.scheme.rawValue)://")
    else { return false }
    let rest = text.dropFirst(url.scheme.rawValue.count + 3)
    guard let end = rest.firstIndex(where: { "/?".contains($0) }), rest[end] == "/" else {
      return false
    }
    // An empty port is a missing value, as of a variable.
    guard !rest[..<end].hasSuffix(":") else { return false }
    // An IP address, or a name that curl does not take for one, like `1.2.3`.
    let last = url.host.split(separator: ".").last
    return IPAddress(url.host) != nil
      || url.host == url.host.lowercased() && url.host.isPlain(with: "-._")
        && last?.isDigits == false
  }
}
