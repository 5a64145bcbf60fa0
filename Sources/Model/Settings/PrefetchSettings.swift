// PrefetchSettings: the keys `prefetch.…`: prefetching of operators' lists.

/// The settings of prefetching, `prefetch.…`.
public struct PrefetchSettings: Hashable, Sendable {
  /// Maximum number of running lines in all lists, 1–1,000 (SDWebImagePrefetcher's
  /// `maxConcurrentPrefetchCount`, 3).
  public var limit = 3
  /// Maximum number of running lines for one host, on any port, 1–1,000. Local files have no host.
  public var limitPerHost = 1
  /// Maximum number of running lists, 1–1,000.
  public var lists = 8

  /// Creates the default settings.
  public init() {}
}
