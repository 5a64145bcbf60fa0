// RedisAddress: where Redis is, and who asks it.

/// The address of a Redis server, with user and database.
public struct RedisAddress: Hashable, Sendable {
  /// The place of the server.
  public enum Place: Hashable, Sendable {
    /// A host name or an IP address without brackets, and a port.
    case host(String, port: Int)
    /// The absolute path of a unix socket.
    case unix(String)
  }

  /// The place of the server.
  public let place: Place
  /// The ACL user; `nil` for the default user.
  public let user: String?
  /// The password; `nil`: the connection does not authenticate.
  public let password: String?
  /// The number of the database.
  public let database: Int

  /// What an address looks like, for error messages.
  public static let allowed = "redis://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE] or unix:/path"

  /// Parses an address. `%` escapes a byte of user and password. A user alone is a password, as in
  /// redis-cli: Redis has no user without one. Returns `nil` for anything else.
  public init?(_ text: String) {
    guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) else { return nil }
    if text.hasPrefix("unix:/") {
      place = .unix(String(text.dropFirst(5)))
      user = nil
      password = nil
      database = 0
      // sun_path has 108 bytes, one of them the end (unix(7)).
      guard text.utf8.count - 5 < 108 else { return nil }
      return
    }
    guard text.hasPrefix("redis://") else { return nil }
    var rest = text.dropFirst(8)
    guard !rest.contains(where: { "?#".contains($0) }) else { return nil }
    var names: (user: String?, password: String?) = (nil, nil)
    if let at = rest.lastIndex(of: "@") {
      let parts = rest[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        .map { PercentEncoding.decode($0.utf8) }
      guard parts.allSatisfy({ $0 != nil }), let first = parts[0], let last = parts.last ?? nil,
        !last.isEmpty
      else { return nil }
      names = parts.count == 2 ? (first.isEmpty ? nil : first, last) : (nil, first)
      rest = rest[rest.index(after: at)...]
    }
    var number = 0
    if let slash = rest.firstIndex(of: "/") {
      let digits = rest[rest.index(after: slash)...]
      guard digits.isEmpty || digits.isDigits, let value = Int(digits.isEmpty ? "0" : digits),
        value < 1 << 20
      else { return nil }
      number = value
      rest = rest[..<slash]
    }
    guard let (host, port) = Self.hostAndPort(rest) else { return nil }
    place = .host(host, port: port)
    user = names.user
    password = names.password
    database = number
  }

  private static func hostAndPort(_ text: Substring) -> (String, Int)? {
    var host = text
    var port = 6_379
    let isBracketed = text.first == "["
    let end = isBracketed ? text.firstIndex(of: "]") : nil
    if isBracketed, end == nil { return nil }
    let afterHost = end.map { text[text.index(after: $0)...] } ?? text
    if let colon = afterHost.lastIndex(of: ":") {
      let digits = text[text.index(after: colon)...]
      guard digits.isDigits, let value = Int(digits), (1...65_535).contains(value) else {
        return nil
      }
      port = value
      host = text[..<colon]
    }
    if isBracketed {
      guard host.last == "]" else { return nil }
      host = host.dropFirst().dropLast()
    }
    let isName = host.isPlain(with: isBracketed ? ":." : "-._")
    return isName && !host.isEmpty && host.utf8.count <= 253 ? (String(host), port) : nil
  }
}
