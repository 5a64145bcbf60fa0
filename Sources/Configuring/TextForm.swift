// TextForm: the forms of texts in settings: names, addresses, networks, patterns, origins.

import Glibc

/// Validates the form of texts.
enum TextForm {
  /// Whether a text has only ASCII letters, digits and `others`.
  static func isPlain(_ text: some StringProtocol, with others: String = "-_") -> Bool {
    text.utf8.allSatisfy { byte in
      switch byte {
      case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
      default: others.utf8.contains(byte)
      }
    }
  }

  /// Accepts the same addresses as the server's listener, including inet_aton(3)'s forms and IPv6
  /// zones.
  static func isNumericAddress(_ text: String) -> Bool {
    var hints = addrinfo()
    hints.ai_flags = AI_NUMERICHOST
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(text, nil, &hints, &list) == 0 else { return false }
    freeaddrinfo(list)
    return true
  }

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
    return text == text.lowercased() && isPlain(scheme, with: "+-.")
      && !rest.isEmpty && rest.first != ":" && isPlain(rest, with: "-._~:[]")
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
      || url.host == url.host.lowercased() && isPlain(url.host, with: "-._")
        && last?.utf8.allSatisfy { (0x30...0x39).contains($0) } == false
  }
}
