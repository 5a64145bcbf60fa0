// PrefetchSettings: the keys `prefetch.…`: prefetching of operators' lists.

/// The settings of prefetching, `prefetch.…`.
public struct PrefetchSettings: Hashable, Sendable {
  /// Maximum running lines in all lists (SDWebImagePrefetcher's `maxConcurrentPrefetchCount`, 3).
  public var limit = 3
  /// Maximum running lines for one host, on any port. Local files have no host.
  public var limitPerHost = 1
  /// Maximum running lists.
  public var lists = 8

  /// Creates the default settings.
  public init() {}
}
