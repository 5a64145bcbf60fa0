// WebOrigin: validates origins in the form that browsers send.

/// Origins in the form of the `Origin` field (RFC 6454, section 6.2).
enum WebOrigin {
  private static let usualPorts = [("https://", ":443"), ("http://", ":80")]

  /// Whether `text` is `*`, or a scheme, host and optional non-default port. Other forms would
  /// never match, because browsers do not send them.
  static func isOne(_ text: String) -> Bool {
    guard text != "*" else { return true }
    let scheme = text.prefix { $0 != ":" }
    guard !scheme.isEmpty, text.dropFirst(scheme.count).hasPrefix("://") else { return false }
    let rest = text.dropFirst(scheme.count + "://".count)
    guard scheme.utf8.allSatisfy(isSchemeByte), !rest.isEmpty, rest.first != ":",
      rest.utf8.allSatisfy(isHostByte)
    else { return false }
    return !usualPorts.contains { text.hasPrefix($0) && text.hasSuffix($1) }
  }

  private static func isSchemeByte(_ byte: UInt8) -> Bool {
    isLetterOrDigit(byte) || "+-.".utf8.contains(byte)
  }

  private static func isHostByte(_ byte: UInt8) -> Bool {
    isLetterOrDigit(byte) || "-._~:[]".utf8.contains(byte)
  }

  private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
      || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
  }
}
