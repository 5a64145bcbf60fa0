// Purge: what an operator has taken out of the cache, and the list of what everyone who keeps something has to ask.

/// What a purge is of.
public enum PurgeScope: Hashable, Sendable {
  /// Everything of one URL, which is what keys are made of: its source, in every variation, and all variants.
  case url(SourceURL)
  /// Everything of the URLs that begin with this one, in canonical form.
  case prefix(SourceURL)
  /// Everything of the hosts that match.
  case host(HostPattern)
  /// Everything of the hosts whose rule has this tag.
  case tag(String)
  /// All there is.
  case everything

  /// Whether something kept under `key` is meant.
  ///
  /// - Parameter filter: whose rules have the tags.
  public func matches(_ key: CacheKey, _ filter: CacheKeyFilter) -> Bool {
    switch self {
    case .url(let url): key.text.utf8.starts(with: url.text.utf8) && key.url == url.text
    // A key begins with its URL, and no URL holds what stands behind one in a key.
    case .prefix(let url): key.text.utf8.starts(with: url.text.utf8)
    case .host(let host): key.host.map(host.matches) ?? false
    case .tag(let tag):
      (try? SourceURL(parsing: key.url)).map { filter.tags(of: $0).contains(tag) } ?? false
    case .everything: true
    }
  }
}

/// A purge with its place among all of them.
public struct Purge: Hashable, Sendable {
  /// Greater than that of every purge before it, on this machine and in earlier runs: microseconds since 1970, or one more
  /// than the last where the clock did not move on.
  public let number: Int
  /// What it is of.
  public let scope: PurgeScope

  /// A purge.
  public init(number: Int, scope: PurgeScope) { (self.number, self.scope) = (number, scope) }
}

/// What was purged, for whoever keeps something or is about to.
///
/// Purges are no removals alone: a load that had begun before one ends after it, and a file may take a while to be found.
/// So everything kept carries the `generation` of its loading, and what a later purge means is not there any more,
/// wherever it still is (Varnish calls such an entry banned).
public protocol PurgeList: Sendable {
  /// The number of the last purge, 0 before the first. To be asked when a load begins, and kept with what it brings.
  var generation: Int { get }
  /// Whether a purge after `generation` means `key`: then nothing of that generation may be stored or served. Never waits.
  func covers(_ key: CacheKey, generation: Int) -> Bool
  /// Adds a purge, which holds from here on, for this run.
  func add(_ scope: PurgeScope) -> Purge
}
