// HostRule: the settings for particular hosts, and their conflicts.

import Model

extension Configuration {
  /// One rule of `hosts`. The first rule that matches a host applies.
  public struct HostRule: Hashable, Sendable {
    /// The hosts that the rule applies to.
    public var host: HostPattern
    /// The query parameters that are part of cache keys.
    public var parameters = KeyRule.Parameters.all
    /// Tags by which the sources of these hosts can be purged.
    public var tags: [String] = []
    /// Freshness settings for these hosts.
    public var freshness = FreshnessOverrides()
    /// Request fields sent to the hosts, by name.
    public var headers: [String: SecretText] = [:]
    /// Names of default fields that are not sent.
    public var dropHeaders: [String] = []
    /// Names of the client's request fields that are forwarded.
    public var forwardHeaders: [String] = []
    /// The user for Basic authentication.
    public var user: String?
    /// The password for Basic authentication.
    public var password: SecretText?
    /// The token for bearer authentication.
    public var token: SecretText?
    /// Whether cookies are kept and sent back.
    public var cookies = false
    /// Whether invalid certificates are accepted.
    public var allowInvalidCertificates = false
    /// The proxy for these hosts; `nil`: `download.proxy`.
    public var proxy: ProxySetting?

    /// Creates a rule without settings.
    public init(host: HostPattern) { self.host = host }
  }

  /// Overrides of `Freshness` for some hosts; `nil` members are not overridden.
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

    /// Creates an empty set of overrides.
    public init() {}
  }

  /// The proxy for some hosts.
  public enum ProxySetting: Hashable, Sendable {
    /// No proxy.
    case direct
    /// A proxy with this URL. User and password are allowed only in a reference.
    case url(SecretText)

    /// The setting as written in a configuration.
    public var text: String {
      switch self {
      case .direct: "direct"
      case .url(let url): url.text
      }
    }
  }
}

extension Configuration.HostRule {
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
    if user != nil, password == nil { return ("user", "a password has to stand beside it") }
    if user == nil, password != nil { return ("password", "a user has to stand beside it") }
    if user != nil, token != nil { return ("token", "it does not go with user and password") }
    return conflictOfFields ?? conflictOfCookies
  }

  /// Each field has one value, from one member.
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

  /// Clients share the cookie jar, so cookies that an origin sets for one client's credentials must
  /// not reach others.
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
