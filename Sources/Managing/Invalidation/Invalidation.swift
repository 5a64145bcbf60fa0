// Invalidation: purges and clears the tiers, and keeps running work from undoing it.

import Model

/// Carries out purges and clears, in the order that leaves no purged entry behind.
struct Invalidation: Sendable {
  private let memory: any MemoryCache
  private let disk: any DiskCache
  private let purges: any PurgeList
  private let validity: EntryValidity
  private let failures: NegativeCache
  private let sources: SourceService
  private let variants: VariantService

  init(
    memory: any MemoryCache, disk: any DiskCache, purges: any PurgeList, validity: EntryValidity,
    failures: NegativeCache, sources: SourceService, variants: VariantService
  ) {
    self.memory = memory
    self.disk = disk
    self.purges = purges
    self.validity = validity
    self.failures = failures
    self.sources = sources
    self.variants = variants
  }

  /// Publishes a purge and applies it. The purge takes effect when it is published, even if a later
  /// step fails.
  ///
  /// The order matters:
  /// 1. Failures before flights: a flight may end with a listed failure.
  /// 2. Source flights before variant flights: a new variant flight must not join an older source
  ///    flight.
  /// 3. Tiers after the writers that checked before the purge was published.
  ///
  /// A flight that enters the table later made its look-ups after the purge was published.
  func purge(_ scope: PurgeScope) async throws(ImageError) -> PurgeReport {
    let purge = purges.add(scope)
    let matches: (CacheKey) -> Bool = { [purges] key in
      purges.covers(key, generation: purge.number - 1)
    }
    var report = PurgeReport()
    report.failed = failures.removeAll(where: matches)
    sources.retireFlights(where: matches)
    variants.retireFlights(where: matches)
    validity.waitForWriters()
    report.memory = memory.removeAll(where: matches)
    report.disk = try await disk.purge(purge)
    return report
  }

  /// Clears tiers.
  ///
  /// Clearing one tier does not stop entries that are being written to it. Clearing all tiers is a
  /// purge of everything, which stops them.
  func clear(_ tiers: StoreTiers) async throws(ImageError) -> PurgeReport {
    guard tiers != .all else { return try await purge(.everything) }
    var report = PurgeReport()
    if tiers.contains(.memory) { report.memory = memory.removeAll { _ in true } }
    if tiers.contains(.disk) { report.disk = try await disk.clear() }
    return report
  }

  /// Removes expired entries from the disk tier.
  func clean() async -> CleanReport { await disk.clean() }

  /// Invalidates the variants of a source that was replaced, and the running work with older bytes.
  func invalidateVariants(of source: CacheKey) async {
    sources.retireFlights { $0 == source }
    variants.retireFlights { $0.source == source }
    validity.waitForWriters()
    await disk.removeVariants(of: source)
    memory.removeVariants(of: source)
  }
}
