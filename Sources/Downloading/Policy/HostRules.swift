// HostRules: the host rules of a downloader with what they share, and which hops get a host's secrets.

import Model

/// The rules of a downloader, with their connections and cookies. The first rule that matches a host applies.
struct HostRules: Sendable {
  /// A rule with what its transfers share.
  struct Entry: Sendable {
    let rule: HostRule
    let share: RuleShare
  }

  private let entries: [Entry]

  /// - Parameter known: earlier rules. One that has not changed keeps what it shares.
  init(_ rules: [HostRule], keeping known: HostRules? = nil) throws(ImageError) {
    var entries: [Entry] = []
    for rule in rules {
      if let same = known?.entries.first(where: { $0.rule == rule }) {
        entries.append(same)
      } else {
        entries.append(Entry(rule: rule, share: try RuleShare(keepsCookies: rule.keepsCookies)))
      }
    }
    self.entries = entries
  }

  /// Returns the rule for a host in the form of `DownloadTarget.host`.
  subscript(host: String) -> Entry? {
    entries.first { $0.rule.store == nil && $0.rule.host.matches(host) }
  }

  /// Returns the rule for a bucket.
  subscript(bucket bucket: String) -> Entry? {
    entries.first { $0.rule.store != nil && $0.rule.host.matches(bucket) }
  }

  /// Returns the rule for the requests to a target.
  subscript(target: DownloadTarget) -> Entry? {
    guard let object = target.object else { return self[target.host] }
    guard let entry = self[bucket: object.host] else { return nil }
    // A load that waited may have the endpoint of an earlier rule, which must not see the secrets of this one.
    return (try? entry.rule.store?.url(of: object)) == target.url ? entry : nil
  }
}

/// The origins that a load was redirected through. Decides which origins get secrets (RFC 9110,
/// section 15.4).
///
/// Another port, or the same host without TLS, may belong to someone else. A client's forwarded
/// fields therefore go to the first origin only. A host rule's secrets go only to the host's origin
/// that the load reached first, or after an upgrade from HTTP to TLS at the default ports. Both must
/// also be among the rule's `credentialOrigins`.
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
