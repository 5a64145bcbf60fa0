// Invalidation: purges and clears the tiers, and keeps running work from undoing it.

import Core

/// Carries out purges and clears, in the order that leaves no purged entry behind.
struct Invalidation: Sendable {
  private let parts: ManagerParts
  private let variants: VariantService

  init(_ variants: VariantService) {
    parts = variants.parts
    self.variants = variants
  }

  /// Applies a purge, then tells the other machines, even if a step failed here.
  ///
  /// - Throws: as `apply` and `SharedCache.publish`.
  func purge(_ scope: PurgeScope) async throws(ImageError) -> PurgeReport {
    let number = parts.fleet?.beginPurge(scope) ?? 0
    let report: PurgeReport
    do throws(ImageError) {
      report = try await apply(scope)
    } catch {
      // The first error is the answer.
      try? await parts.fleet?.publish(scope, number: number, isDurable: false)
      throw error
    }
    try await parts.fleet?.publish(scope, number: number, isDurable: true)
    return report
  }

  /// Makes purges durable that are in force and could not be recorded.
  ///
  /// - Throws: `internal` if they still cannot.
  func recordPurges() async throws(ImageError) { try await parts.disk.recordPurges() }

  /// Publishes a purge to all parts of this machine and applies it. The purge takes effect when it is
  /// published, even if a later step fails.
  ///
  /// The order matters:
  /// 1. Remove failures, then retire flights. Otherwise a new flight finds a purged failure.
  /// 2. Retire source flights, then variant flights. Otherwise a new variant flight joins an old
  ///    source flight.
  /// 3. Wait for writers, then empty the tiers. Otherwise a writer that checked before the purge was
  ///    published stores its entry afterwards.
  ///
  /// A flight that starts after step 2 sees the purge in each look-up. A miss checks a source that its
  /// request already holds.
  ///
  /// - Throws: `internal` if the disk tier cannot make the purge durable. It is in force nevertheless.
  func apply(_ scope: PurgeScope) async throws(ImageError) -> PurgeReport {
    let purge = parts.purges.add(scope)
    // Covered after the previous number: by this purge, or by a later one. The list knows the tags of
    // hosts.
    let matches: (CacheKey) -> Bool = { [purges = parts.purges] key in
      purges.covers(key, generation: purge.number - 1)
    }
    var report = PurgeReport()
    report.failed = parts.failures.removeAll(where: matches)
    parts.sources.retireFlights(where: matches)
    variants.retireFlights(where: matches)
    parts.validity.waitForWriters()
    report.memory = parts.sweep.remove(purge)
    report.disk = try await parts.disk.purge(purge)
    return report
  }

  /// Empties the given tiers. All tiers together are a purge of everything.
  ///
  /// One tier alone keeps failures and flights: an entry that is being written may appear in it later.
  ///
  /// - Throws: `internal` if the disk tier cannot make the result durable.
  func clear(_ tiers: StoreTiers) async throws(ImageError) -> PurgeReport {
    guard tiers != .all else { return try await purge(.everything) }
    var report = PurgeReport()
    if tiers.contains(.memory) { report.memory = parts.memory.removeAll { _ in true } }
    if tiers.contains(.disk) { report.disk = try await parts.disk.clear() }
    return report
  }

  /// Removes matching entries from one tier, without the guarantees of a purge.
  ///
  /// - Throws: as `CacheOperations.remove`.
  func remove(
    _ scope: PurgeScope, from tier: CacheTier, filter: CacheKeyFilter
  ) async throws(ImageError) -> PurgeReport {
    var report = PurgeReport()
    switch (tier, scope) {
    case (.all, _): return try await purge(scope)
    case (.memory, _):
      report.memory = parts.memory.removeAll { scope.matches($0.key, filter: filter) }
    case (.disk, .everything): report.disk = try await parts.disk.clear()
    case (.disk, .url(let url)): report.disk = await parts.disk.remove(allOf: url)
    case (.disk, _):
      throw .invalidParameter(
        name: "tier", value: tier.rawValue,
        allowed: "with prefix, host or tag: memory, shared or all")
    case (.shared, _):
      guard let fleet = parts.fleet else {
        throw .invalidParameter(
          name: "tier", value: tier.rawValue,
          allowed: "memory, disk or all: without fleet.redis nothing is shared")
      }
      let number = fleet.beginPurge(scope)
      try await fleet.publish(scope, number: number, isDurable: true)
    }
    return report
  }

  /// Removes expired entries from the disk tier, and evicts others if the tier is nearly full.
  func clean() async -> CleanReport { await parts.disk.clean() }

  /// Invalidates the variants of a replaced source, and retires flights that may use its old bytes.
  ///
  /// Call after the new version is recorded. Disk comes before memory, because disk hits fill memory.
  func invalidateVariants(of source: CacheKey) async {
    parts.sources.retireFlights { $0 == source }
    variants.retireFlights { $0.source == source }
    parts.validity.waitForWriters()
    await parts.disk.removeVariants(of: source)
    parts.memory.removeVariants(of: source)
  }
}
