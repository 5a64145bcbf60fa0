// HostRule+Conflicts: the fields that a host rule may set, and conflicts between its members.

import Model

extension HostRule {
  /// Whether only the downloader may set the field. Such fields belong to the message and its
  /// connection, or change the kind of response (RFC 9110, sections 7.6.1, 8.4, 13.1 and 14.2; RFC
  /// 9112).
  static func isReserved(_ name: String) -> Bool {
    let name = name.lowercased()
    return name.hasPrefix("if-")
      || [
        "host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer",
        "upgrade", "range", "accept-encoding", "expect", "proxy-authorization",
        "proxy-authenticate", "proxy-connection", "http2-settings", "cdn-loop",
      ].contains(name)
  }

  /// Whether the field identifies the client.
  static func isCredential(_ name: String) -> Bool {
    ["authorization", "cookie"].contains(name.lowercased())
  }

  /// The first conflict between members: the member, and the problem.
  var conflict: (member: String, problem: String)? {
    if written.user != nil, written.password == nil {
      return ("user", "it requires a password")
    }
    if written.user == nil, written.password != nil {
      return ("password", "it requires a user")
    }
    if written.user != nil, written.token != nil {
      return ("token", "it cannot be combined with user and password")
    }
    return conflictOfFields ?? conflictOfCookies ?? conflictOfStore
  }

  /// Each field has one value, from one member.
  private var conflictOfFields: (member: String, problem: String)? {
    var places: [String: String] = [:]
    if written.user != nil { places["authorization"] = "user" }
    if written.token != nil { places["authorization"] = "token" }
    let members = [
      ("headers", written.headers.keys.sorted()), ("drop_headers", droppedHeaders),
      ("forward_headers", forwardedHeaders),
    ]
    for (member, names) in members {
      for name in names {
        if let other = places.updateValue(member, forKey: name.lowercased()) {
          let problem =
            other == member ? "'\(name)' appears twice" : "'\(name)' is in \(other) already"
          return (member, problem)
        }
      }
    }
    return nil
  }

  /// Clients share the cookie jar, so cookies that an origin sets for one client's credentials must
  /// not reach others.
  private var conflictOfCookies: (member: String, problem: String)? {
    guard keepsCookies else { return nil }
    if written.headers.keys.contains(where: { $0.lowercased() == "cookie" }) {
      return ("cookies", "they cannot be combined with a Cookie in headers")
    }
    if forwardedHeaders.contains(where: Self.isCredential) {
      return ("cookies", "they cannot be combined with a forwarded Authorization or Cookie")
    }
    return nil
  }
}
