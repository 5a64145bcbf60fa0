// AdminServices: the services behind the admin endpoints.

import Model

/// The services that `/admin` uses.
public struct AdminServices: Sendable {
  let manager: any ManagerOperations
  let cache: any CacheOperations
  let downloads: any DownloadOperations
  let prefetcher: any PrefetchOperations

  /// Creates the services from their implementations.
  public init(
    manager: any ManagerOperations, cache: any CacheOperations,
    downloads: any DownloadOperations, prefetcher: any PrefetchOperations
  ) {
    self.manager = manager
    self.cache = cache
    self.downloads = downloads
    self.prefetcher = prefetcher
  }
}
