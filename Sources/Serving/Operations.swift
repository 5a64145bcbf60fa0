// Operations: where the operators' paths lead.

import Model

/// What `/admin` asks of the other parts.
public struct Operations: Sendable {
  let manager: any ManagerOperations
  let downloads: any DownloadOperations
  let prefetcher: any PrefetchOperations

  /// The parts.
  public init(
    manager: any ManagerOperations, downloads: any DownloadOperations,
    prefetcher: any PrefetchOperations
  ) {
    (self.manager, self.downloads, self.prefetcher) = (manager, downloads, prefetcher)
  }
}
