// Operations: where the operators' paths lead.

import Model

/// What `/admin` asks of the other parts.
public struct Operations: Sendable {
  let manager: any ManagerOperations
  let cache: any CacheOperations
  let downloads: any DownloadOperations
  let prefetcher: any PrefetchOperations

  /// The parts.
  public init(
    manager: any ManagerOperations, cache: any CacheOperations,
    downloads: any DownloadOperations, prefetcher: any PrefetchOperations
  ) {
    (self.manager, self.cache) = (manager, cache)
    (self.downloads, self.prefetcher) = (downloads, prefetcher)
  }
}
