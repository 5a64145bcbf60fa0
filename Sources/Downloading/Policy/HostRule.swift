// HostRule, HostRules: what is different for some hosts, and which hop is told what of it.

import Model

/// What an operator decided about some hosts.
public struct HostRule: Sendable {
  /// By which proxy the hosts are asked.
  public enum Proxy: Hashable, Sendable {
    /// The configuration's, if it has one.
    case standard
    /// None.
    case direct
    /// The one with this URL, `http://host:port`, which may hold a user and a password.
    case url(String)
  }

  /// The hosts it is for.
  public let host: HostPattern
  /// Fields that every request to them has; one that is sent anyway has this value.
  public var headers: [HeaderField] = []
  /// The same with values that are secret, credentials among them.
  public var secretHeaders: [HeaderField] = []
  /// Names of fields that they are not sent.
  public var droppedHeaders: [String] = []
  /// Names of the fields that go on to them from a client's request.
  public var forwardedHeaders: [String] = []
  /// Whether the cookies that they set are kept, in memory, and sent back to them, whoever asks.
  public var keepsCookies = false
  /// Whether whoever answers in their names is believed: certificates are not looked at.
  public var allowsInvalidCertificates = false
  /// By which proxy they are asked.
  public var proxy = Proxy.standard

  /// A rule that changes nothing.
  public init(host: HostPattern) { self.host = host }
}

/// The rules of one downloader, each with its cookies. The first that matches a host counts.
struct HostRules: Sendable {
  /// A rule with what belongs to it while the downloader lives.
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

  /// The rule for a host, as `DownloadTarget` has it.
  subscript(host: String) -> Entry? { entries.first { $0.rule.host.matches(host) } }
}

/// The origins that a load has been led to, which tells whom secrets are meant for (RFC 9110, section 15.4).
///
/// A redirect may lead anywhere, and whoever answers at another port or without TLS need not be who answers at the
/// first. So what a client had forwarded goes to the first origin alone, and what a host's own rule has for it only to
/// that of its origins which the load came to first, or from plain HTTP to TLS at the usual ports.
struct RedirectTrail {
  private let first: DownloadTarget.Origin
  private var origins: [String: DownloadTarget.Origin]

  init(_ target: DownloadTarget) {
    first = target.origin
    origins = [target.host: target.origin]
  }

  /// Notes a hop; tells whether its host's own secrets are meant for it.
  mutating func enter(_ target: DownloadTarget) -> Bool {
    guard let known = origins[target.host] else {
      origins[target.host] = target.origin
      return true
    }
    return known == target.origin || target.origin.secures(known)
  }

  /// Whether a hop is to the origin that was asked for.
  func isFirst(_ target: DownloadTarget) -> Bool { target.origin == first }
}
