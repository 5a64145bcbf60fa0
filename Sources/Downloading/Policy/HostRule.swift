// HostRule: the settings for particular hosts, and which hops get a host's secrets.

import Model

/// The operator's settings for a group of hosts.
public struct HostRule: Sendable {
  /// The proxy for the hosts.
  public enum Proxy: Hashable, Sendable {
    /// The configuration's proxy, if any.
    case standard
    /// No proxy.
    case direct
    /// A proxy with this URL, `http://host:port`, optionally with user and password.
    case url(String)
  }

  /// The hosts that the rule applies to.
  public let host: HostPattern
  /// Fields that are added to every request; they replace fields of the same name.
  public var headers: [HeaderField] = []
  /// Fields that are added to every request and have secret values, such as credentials.
  public var secretHeaders: [HeaderField] = []
  /// Names of fields that are not sent.
  public var droppedHeaders: [String] = []
  /// Names of the client's request fields that are forwarded.
  public var forwardedHeaders: [String] = []
  /// Whether cookies are kept in memory and sent back, shared by all clients.
  public var keepsCookies = false
  /// Whether certificates are not verified.
  public var allowsInvalidCertificates = false
  /// The proxy for the hosts.
  public var proxy = Proxy.standard

  /// Creates a rule without settings.
  public init(host: HostPattern) { self.host = host }
}

/// The rules of a downloader, with their cookies. The first rule that matches a host applies.
struct HostRules: Sendable {
  /// A rule with its cookie jar.
  struct Entry: Sendable {
    let rule: HostRule
    let jar: CookieJar?
  }

  private let entries: [Entry]

  init(_ rules: [HostRule]) throws(ImageError) {
    var entries: [Entry] = []
    for rule in rules {
      entries.append(Entry(rule: rule, jar: rule.keepsCookies ? try CookieJar() : nil))
    }
    self.entries = entries
  }

  /// Returns the rule for a host in the form of `DownloadTarget.host`.
  subscript(host: String) -> Entry? { entries.first { $0.rule.host.matches(host) } }
}

/// The origins that a load was redirected through. Decides which origins get secrets (RFC 9110,
/// section 15.4).
///
/// Another port, or the same host without TLS, may belong to someone else. A client's forwarded
/// fields therefore go to the first origin only. A host rule's secrets go only to the host's origin
/// that the load reached first, or after an upgrade from HTTP to TLS at the default ports.
struct RedirectTrail {
  private let first: DownloadTarget.Origin
  private var origins: [String: DownloadTarget.Origin]

  init(_ target: DownloadTarget) {
    first = target.origin
    origins = [target.host: target.origin]
  }

  /// Records a hop. Returns whether the hop gets its host's secrets.
  mutating func enter(_ target: DownloadTarget) -> Bool {
    guard let known = origins[target.host] else {
      origins[target.host] = target.origin
      return true
    }
    return known == target.origin || target.origin.secures(known)
  }

  /// Whether a hop goes to the requested origin.
  func isFirst(_ target: DownloadTarget) -> Bool { target.origin == first }
}
