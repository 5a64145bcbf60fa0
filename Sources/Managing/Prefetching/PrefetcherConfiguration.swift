// PrefetcherConfiguration: how much a prefetcher does at once.

/// The bounds of a prefetcher.
public struct PrefetcherConfiguration: Sendable {
  /// Most images asked for at once, of all lists together (SDWebImagePrefetcher's maxConcurrentPrefetchCount, 3).
  public var limit = 3
  /// Most of them from one host, whatever its ports, so that it has room for everybody else; local files have no host.
  public var limitPerHost = 1
  /// Most lists worked on at once.
  public var lists = 8
  /// Lists that have ended and can still be asked about, those that ended last.
  public var endedLists = 64

  /// The defaults.
  public init() {}
}
