// AdminServices: the services behind the admin endpoints.

import Core

/// The services that `/admin` uses.
public struct AdminServices: Sendable {
  let manager: any ManagerOperations
  let cache: any CacheOperations
  let downloads: any DownloadOperations
  let prefetcher: any PrefetchOperations
  let explainer: any RequestExplainer
  let doctor: any SourceDoctor
  /// What uploads in memory count against.
  let bodies: ByteBudget

  /// Creates the services from their implementations.
  ///
  /// - Parameter bodies: what uploads in memory count against.
  public init(
    manager: any ManagerOperations, cache: any CacheOperations,
    downloads: any DownloadOperations, prefetcher: any PrefetchOperations,
    explainer: any RequestExplainer, doctor: any SourceDoctor,
    bodies: ByteBudget = .unlimited
  ) {
    self.bodies = bodies
    self.manager = manager
    self.cache = cache
    self.downloads = downloads
    self.prefetcher = prefetcher
    self.explainer = explainer
    self.doctor = doctor
  }
}
