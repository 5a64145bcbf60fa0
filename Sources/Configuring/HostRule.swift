// HostRule: what an operator decides about some hosts, and what of it does not go together.

import Model

extension Configuration {
  /// One rule of `hosts`; of several for one host, the first counts.
  public struct HostRule: Hashable, Sendable {
    /// The hosts it is for.
    public var host: HostPattern
    /// Which parameters of the query are part of keys.
    public var parameters = KeyRule.Parameters.all
    /// Names under which the sources of these hosts can be purged.
    public var tags: [String] = []
    /// How long their images are served.
    public var freshness = FreshnessOverrides()
    /// Header fields that origins are sent, by name.
    public var headers: [String: SecretText] = [:]
    /// Names of the default fields that they are not.
    public var dropHeaders: [String] = []
    /// Names of the fields that a client's request passes on to them.
    public var forwardHeaders: [String] = []
    /// The user for Basic authentication.
    public var user: String?
    /// Its password.
    public var password: SecretText?
    /// The token for bearer authentication.
    public var token: SecretText?
    /// Whether cookies are kept and sent.
    public var cookies = false
    /// Whether certificates are trusted that nobody vouches for.
    public var allowInvalidCertificates = false
    /// The proxy by which these hosts are asked; `nil`: `download.proxy`.
    public var proxy: ProxySetting?

    /// A rule that changes nothing.
    public init(host: HostPattern) { self.host = host }
  }

  /// What of `freshness` is different for some hosts; `nil` where nothing is.
  public struct FreshnessOverrides: Hashable, Sendable {
    /// See `Freshness`.
    public var defaultLifetime: Duration?
    /// See `Freshness`.
    public var heuristicLifetime: Duration?
    /// See `Freshness`.
    public var clientDefault: Duration?
    /// See `Freshness`.
    public var minimumLifetime: Duration?
    /// See `Freshness`.
    public var maximumLifetime: Duration?
    /// See `Freshness`.
    public var staleWhileRevalidate: Duration?
    /// See `Freshness`.
    public var staleIfError: Duration?

    /// Nothing is.
    public init() {}
  }

  /// By which proxy hosts are asked.
  public enum ProxySetting: Hashable, Sendable {
    /// None.
    case direct
    /// One with this URL; with a user and a password in it only where it stands elsewhere.
    case url(SecretText)

    /// What is written for it.
    public var text: String {
      switch self {
      case .direct: "direct"
      case .url(let url): url.text
      }
    }
  }
}

extension Configuration.HostRule {
  /// Fields that belong to the message and its connection, or change what an answer is (RFC 9110, sections 7.6.1, 8.4,
  /// 13.1 and 14.2, RFC 9112): sent by nobody but the downloader, which knows what it does.
  static func isReserved(_ name: String) -> Bool {
    let name = name.lowercased()
    return name.hasPrefix("if-")
      || [
        "host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer",
        "upgrade", "range", "accept-encoding", "expect", "proxy-authorization",
        "proxy-authenticate", "proxy-connection", "http2-settings", "cdn-loop",
      ].contains(name)
  }

  /// Fields that tell who asks.
  static func isCredential(_ name: String) -> Bool {
    ["authorization", "cookie"].contains(name.lowercased())
  }

  /// The first thing that does not go together: the member, and why.
  var conflict: (member: String, problem: String)? {
    if user != nil, password == nil { return ("user", "a password has to stand beside it") }
    if user == nil, password != nil { return ("password", "a user has to stand beside it") }
    if user != nil, token != nil { return ("token", "it does not go with user and password") }
    return conflictOfFields ?? conflictOfCookies
  }

  /// Each field has one value, from one place.
  private var conflictOfFields: (member: String, problem: String)? {
    var places: [String: String] = [:]
    if user != nil { places["authorization"] = "user" }
    if token != nil { places["authorization"] = "token" }
    let members = [
      ("headers", headers.keys.sorted()), ("drop_headers", dropHeaders),
      ("forward_headers", forwardHeaders),
    ]
    for (member, names) in members {
      for name in names {
        if let other = places.updateValue(member, forKey: name.lowercased()) {
          let problem =
            other == member ? "'\(name)' is there twice" : "'\(name)' is in \(other) already"
          return (member, problem)
        }
      }
    }
    return nil
  }

  /// A jar is shared by all clients: what an origin gives one of them for its credentials is not for the others.
  private var conflictOfCookies: (member: String, problem: String)? {
    guard cookies else { return nil }
    if headers.keys.contains(where: { $0.lowercased() == "cookie" }) {
      return ("cookies", "they do not go with a Cookie in headers")
    }
    if forwardHeaders.contains(where: Self.isCredential) {
      return ("cookies", "they do not go with clients' Authorization or Cookie")
    }
    return nil
  }
}
