// VariantCache: the memory tier and the disk tier as one cache of current variants.

import Core

/// Stores variants in the tiers and returns those that are current.
final class VariantCache: Sendable {
  private let memory: any MemoryCache
  private let sweep: MemorySweep
  private let disk: any DiskCache
  private let validity: EntryValidity
  private let imaging: ImagingPolicy
  private let fleet: (any SharedCache)?

  init(
    memory: any MemoryCache, sweep: MemorySweep, disk: any DiskCache, validity: EntryValidity,
    imaging: ImagingPolicy, fleet: (any SharedCache)?
  ) {
    self.fleet = fleet
    self.imaging = imaging
    self.memory = memory
    self.sweep = sweep
    self.disk = disk
    self.validity = validity
  }

  // MARK: Look-ups

  /// Returns the variant of a memory hit. Never blocks, and allocates nothing, except for the one
  /// hit that ends a deferral and the one that makes a variant popular.
  ///
  /// Needs no look-up of purges but while `MemorySweep` is due.
  ///
  /// - Parameter isPopular: called by the hit that makes the variant popular.
  func hit(_ key: CacheKey, freshAt now: UnixTime, isPopular: (Variant) -> Void) -> Variant? {
    let mark = sweep.mark
    guard let variant = memory.variant(for: key, freshAt: now), sweep.mayServe(variant, since: mark)
    else { return nil }
    if variant.hasErrand {
      if variant.isDeferred { admit(variant, for: .repeated) }
      if variant.countHit() { isPopular(variant) }
    }
    return variant
  }

  /// Returns whether memory has a fresh variant, without updating hit statistics. Ends its
  /// deferral, as a hit does: a prefetch asks no further.
  func isFresh(_ key: CacheKey, at now: UnixTime) -> Bool {
    let mark = sweep.mark
    guard let variant = memory.peek(key), variant.info.freshness.isFresh(at: now),
      sweep.mayServe(variant, since: mark)
    else { return false }
    if variant.isDeferred { admit(variant, for: .repeated) }
    return true
  }

  /// Returns the current variant in memory, fresh or not, without updating hit statistics.
  func inMemory(_ key: CacheKey) -> Variant? { memory.peek(key).flatMap { current($0) } }

  /// Returns the current variant on disk, fresh or not.
  ///
  /// - Parameter isUse: whether to read and count it. Otherwise it has no bytes.
  func onDisk(_ key: CacheKey, isUse: Bool = true) async -> Variant? {
    guard isUse else { return await entryOnDisk(key).flatMap { Variant($0, of: key) } }
    return await disk.variant(for: key).flatMap { current($0) }
  }

  private func entryOnDisk(_ key: CacheKey) async -> CacheEntryInfo? {
    await disk.look(for: key).flatMap { validity.isCurrent($0, of: key) ? $0 : nil }
  }

  /// Whether machines may share a variant: not that of local files, which differ, nor that of some
  /// clients (`Vary`).
  static func mayBeShared(_ key: CacheKey) -> Bool { key.host != nil && key.variation == nil }

  /// Returns the current variant in the shared tier, fresh or not.
  func shared(_ key: CacheKey) async -> Variant? {
    // Before the look-up: a purge that is applied meanwhile covers the result.
    let generation = validity.generation
    return await fleet?.variant(for: key, generation: generation).flatMap { current($0) }
  }

  /// Returns a small current variant on disk if it is available without blocking and `accepts`
  /// accepts it.
  func onDiskAtOnce(_ key: CacheKey, where accepts: (VariantInfo) -> Bool) -> Variant? {
    disk.variantAtOnce(for: key, where: accepts).flatMap { current($0) }
  }

  /// Returns the current variant in memory or, if memory has none, on disk.
  func variant(for key: CacheKey, isUse: Bool = true) async -> Variant? {
    if let variant = memory.peek(key) { return current(variant) }
    return await onDisk(key, isUse: isUse)
  }

  /// Returns information about the entries of `key` in both tiers, without updating hit statistics.
  func lookUp(_ key: CacheKey) async -> CacheLookup {
    var lookup = CacheLookup()
    lookup.memory = inMemory(key).map { CacheEntryInfo($0) }
    lookup.disk = await entryOnDisk(key)
    return lookup
  }

  // MARK: Changes

  /// Stores a variant in the given tiers and returns whether one accepted it. Damaged variants stay
  /// in memory.
  ///
  /// - Parameter demand: who asks; the disk tier may defer the variant.
  @discardableResult
  func store(
    _ variant: Variant, in tiers: StoreTiers, for demand: VariantDemand = .vouched,
    isFromFleet: Bool = false
  ) -> Bool {
    let tiers = variant.info.isDamaged ? tiers.intersection(.memory) : tiers
    // Released when purges need not wait for the store any more.
    var gone: [Variant] = []
    return validity.writing(variant.key) {
      // Before the check: a purge that is applied after it has a later position.
      let mark = tiers.contains(.disk) && !isFromFleet ? fleet?.mark : nil
      guard validity.isCurrent(variant) else { return false }
      // Before it is in memory, where the next hit may find it and then counts as the second
      // request.
      if tiers.contains(.disk) { variant.deferStoring() }
      if tiers.contains(.memory) { imaging.countHits(of: variant) }
      let isInMemory = tiers.contains(.memory) && memory.store(variant, releasing: &gone)
      let outcome = tiers.contains(.disk) ? disk.store(variant, for: demand) : .refused
      if outcome != .deferred {
        _ = variant.endDeferral()
        share(variant, since: mark)
      }
      // The source may have changed since the first check. A disk hit checks again when it is read.
      if isInMemory, !validity.isCurrent(variant) { memory.remove(variant.key) }
      return isInMemory || outcome == .stored
    }
  }

  /// Stores a deferred variant on disk, because its key was asked for again. Never blocks, and does
  /// nothing for other variants.
  func admit(_ variant: Variant, for demand: VariantDemand) {
    guard variant.endDeferral() else { return }
    validity.writing(variant.key) {
      let mark = fleet?.mark
      guard validity.isCurrent(variant) else { return }
      _ = disk.store(variant, for: demand)
      share(variant, since: mark)
    }
  }

  private func share(_ variant: Variant, since mark: SharedMark?) {
    guard let fleet, let mark, !variant.info.isLocal, Self.mayBeShared(variant.key) else { return }
    fleet.store(variant, since: mark)
  }

  /// Replaces a variant in both tiers by the same image in other bytes, which keeps its freshness.
  ///
  /// - Parameters:
  ///   - old: the variant. Memory may have its bytes with another freshness by now.
  ///   - change: returns the new variant for what memory has.
  /// - Returns: `false` if memory does not have these bytes any more, or if they are purged.
  func exchange(_ old: Variant, _ change: (Variant) -> Variant) -> Bool {
    var gone: [Variant] = []
    return validity.writing(old.key) {
      // A renewal replaces the object. More than one at this moment is unlikely, and costs only the
      // work.
      for _ in 0..<3 {
        guard let present = memory.peek(old.key), present.info.etag == old.info.etag,
          validity.isCurrent(present)
        else { return false }
        let variant = change(present)
        guard memory.exchange(present, for: variant, releasing: &gone) else { continue }
        _ = disk.store(variant, for: .replacement)
        // The source may have changed since the check.
        if !validity.isCurrent(variant) { memory.remove(variant.key) }
        return true
      }
      return false
    }
  }

  /// Stores a new variant and returns whether a tier accepted it. A tier that may not store the
  /// variant drops an outdated one, which the next request would get otherwise.
  func replace(
    _ old: Variant?, with variant: Variant, in tiers: StoreTiers,
    for demand: VariantDemand = .vouched
  ) async -> Bool {
    let tiers = variant.info.freshness.isStorable ? tiers : []
    let isStored = store(variant, in: tiers, for: demand)
    func isOutdated(_ old: Variant) -> Bool {
      old.info.sourceVersion != variant.info.sourceVersion
        || old.info.watermarkVersion != variant.info.watermarkVersion
    }
    if !tiers.contains(.memory), let other = memory.peek(variant.key), isOutdated(other) {
      memory.remove(variant.key)
    }
    if !tiers.contains(.disk), let old, isOutdated(old) { await disk.remove(variant.key) }
    return isStored
  }

  /// Removes all variants of a source from disk, then from memory, because disk hits fill memory.
  func removeVariants(of source: CacheKey) async {
    await disk.removeVariants(of: source)
    memory.removeVariants(of: source)
  }

  private func current(_ variant: Variant) -> Variant? {
    validity.isCurrent(variant) ? variant : nil
  }
}
