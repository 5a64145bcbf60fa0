// KeyValues: validates the texts of keys: addresses, names, networks.

import Glibc
import Model

extension Configuration {
  /// Accepts the same addresses as the server's listener, including inet_aton(3)'s forms and IPv6
  /// zones.
  @Sendable static func isNumericAddress(_ text: String) -> Bool {
    var hints = addrinfo()
    hints.ai_flags = AI_NUMERICHOST
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(text, nil, &hints, &list) == 0 else { return false }
    freeaddrinfo(list)
    return true
  }

  @Sendable static func isName(_ text: String) -> Bool {
    text.utf8.allSatisfy { byte in
      (0x30...0x39).contains(byte) || (0x61...0x7a).contains(byte | 0x20) || byte == 0x2d
        || byte == 0x5f
    }
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

  static let sourcePatterns = "hosts such as example.com, *.example.com:8443 or example.com/path"

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
}
