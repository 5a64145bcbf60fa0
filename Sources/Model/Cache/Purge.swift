// Purge: the scope of a purge, and the port for the list of purges.

/// The entries that a purge removes.
public enum PurgeScope: Hashable, Sendable {
  /// All entries of one URL: the source in every variation, and all variants. The URL is the one
  /// that cache keys are made of.
  case url(SourceURL)
  /// All entries of URLs with this prefix, in canonical form.
  case prefix(SourceURL)
  /// All entries of matching hosts.
  case host(HostPattern)
  /// All entries of hosts whose rule has this tag.
  case tag(String)
  /// All entries.
  case everything

  /// Returns whether the scope contains an entry.
  ///
  /// - Parameter filter: the rules with the tags.
  public func matches(_ key: CacheKey, filter: CacheKeyFilter) -> Bool {
    switch self {
    case .url(let url): key.text.utf8.starts(with: url.text.utf8) && key.url == url.text
    // The text after the URL in a key cannot occur in a URL, so comparing the whole key is safe.
    case .prefix(let url): key.text.utf8.starts(with: url.text.utf8)
    case .host(let host): key.host.map(host.matches) ?? false
    case .tag(let tag):
      (try? SourceURL(parsing: key.url)).map { filter.tags(of: $0).contains(tag) } ?? false
    case .everything: true
    }
  }

  /// The kind and the value as texts, in files and between machines. Kinds are those of
  /// `DELETE /admin/cache`, and `everything`, which has no value.
  public var words: (kind: String, value: String?) {
    switch self {
    case .url(let url): ("url", url.text)
    case .prefix(let url): ("prefix", url.text)
    case .host(let host): ("host", host.description)
    case .tag(let tag): ("tag", tag)
    case .everything: ("everything", nil)
    }
  }

  /// Reads untrusted words. Returns `nil` for any that `words` does not return; a URL has to be in
  /// its normalised form.
  public init?(kind: some StringProtocol, value: String?) {
    let url = value.flatMap { text in
      (try? SourceURL(parsing: text)).flatMap { $0.text == text ? $0 : nil }
    }
    let scope: PurgeScope? =
      switch kind {
      case "url": url.map { .url($0) }
      case "prefix": url.map { .prefix($0) }
      case "host": value.flatMap { HostPattern($0) }.map { .host($0) }
      case "tag": value.map { .tag($0) }
      case "everything": value == nil ? .everything : nil
      default: nil
      }
    guard let scope else { return nil }
    self = scope
  }
}

/// A purge and its number.
public struct Purge: Hashable, Sendable {
  /// Microseconds since 1970, or one more than the previous number if the clock did not advance. So
  /// numbers increase across restarts.
  public let number: Int
  /// The entries to remove.
  public let scope: PurgeScope

  /// Creates a purge.
  public init(number: Int, scope: PurgeScope) {
    self.number = number
    self.scope = scope
  }
}

/// The list of purges, which all parts that store or serve entries check.
///
/// A purge is more than a removal: a running download may end after the purge, and finding files
/// takes time. So every entry has the `generation` of its load. An entry that a later purge covers
/// counts as absent, wherever it is stored (Varnish calls this a ban).
public protocol PurgeList: Sendable {
  /// The number of the last purge, 0 before the first. A load reads it when it begins and keeps it
  /// with the result.
  var generation: Int { get }
  /// Returns whether a purge after `generation` covers `key`. Such entries must be neither stored
  /// nor served. Never blocks.
  func covers(_ key: CacheKey, generation: Int) -> Bool
  /// Adds a purge, which takes effect immediately and lasts for the life of the process.
  func add(_ scope: PurgeScope) -> Purge
}
