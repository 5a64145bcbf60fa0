// PrefetcherConfiguration: the limits of a prefetcher.

/// The limits of a prefetcher.
public struct PrefetcherConfiguration: Sendable {
  /// The maximum number of running lines in all lists (SDWebImagePrefetcher's
  /// `maxConcurrentPrefetchCount`, 3).
  public var limit = 3
  /// The maximum number of running lines for one host, on any port. Local files have no host.
  public var limitPerHost = 1
  /// The maximum number of running lists.
  public var lists = 8
  /// The number of ended lists whose status stays available.
  public var endedLists = 64

  /// Creates the default limits.
  public init() {}
}
