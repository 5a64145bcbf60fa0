// VariantLookup: looks up the variant of a request, with one rule of freshness for all tiers.

import Model

/// A current variant in a tier.
struct CachedVariant {
  let variant: Variant
  let tier: CacheStatus.Tier
  /// How the variant may satisfy the request, or `nil` if the origin must be asked first.
  let use: EntryUse?
}

/// Looks up variants for requests. `Staleness` decides how each may be used.
struct VariantLookup: Sendable {
  private let cache: VariantCache
  private let staleness: Staleness
  private let requests: RenderRequests

  init(cache: VariantCache, staleness: Staleness, requests: RenderRequests) {
    self.requests = requests
    self.cache = cache
    self.staleness = staleness
  }

  /// Looks in memory. Never blocks.
  func inMemory(_ request: ImageRequest) -> CachedVariant? {
    cache.inMemory(request.key).map { cached($0, tier: .memory, for: request) }
  }

  /// Looks on disk.
  func onDisk(_ request: ImageRequest) async -> CachedVariant? {
    await cache.onDisk(request.key).map { cached($0, tier: .disk, for: request) }
  }

  /// Whether there is a shared tier.
  var shares: Bool { cache.shares }

  /// Looks in the shared tier.
  func shared(_ request: ImageRequest) async -> CachedVariant? {
    await cache.shared(request.key).map { cached($0, tier: .shared, for: request) }
  }

  /// Stores a variant of the shared tier in this machine's tiers, as far as the request allows it.
  /// The disk tier does not defer it: another machine has admitted it.
  func keepShared(_ variant: Variant, for request: ImageRequest) {
    requests.note(request, of: variant)
    cache.store(
      variant, in: request.options.store, for: request.options.demand(isRepeated: true),
      isFromFleet: true)
  }

  /// Looks on disk for a small variant that the request may use. Never blocks.
  func onDiskAtOnce(_ request: ImageRequest) -> CachedVariant? {
    cache.onDiskAtOnce(
      request.key, where: { staleness.use(of: $0.freshness, by: request) != nil }
    ).map { cached($0, tier: .disk, for: request) }
  }

  /// Looks on disk for a small fresh variant. Never blocks.
  func freshOnDisk(_ key: CacheKey, at now: UnixTime) -> Variant? {
    cache.onDiskAtOnce(key, where: { $0.freshness.isFresh(at: now) })
  }

  /// Stores a variant from disk in memory.
  ///
  /// - Parameter request: returns the request of the variant; called only if it is rendered again.
  func promote(_ variant: Variant, of request: () -> ImageRequest?) {
    if requests.mayNote(variant), let request = request() { requests.note(request, of: variant) }
    cache.store(variant, in: .memory)
  }

  /// Stores a variant from disk in memory if the request's storage options allow it.
  func promote(_ variant: Variant, for request: ImageRequest) {
    requests.note(request, of: variant)
    cache.store(variant, in: request.options.store.intersection(.memory))
  }

  /// Returns the response with a cached variant, or `nil` if the request may not use it.
  func response(with found: CachedVariant, timings: Timings) -> VariantResult? {
    guard let use = found.use else { return nil }
    if found.tier == .memory { cache.admit(found.variant, for: .repeated) }
    let status = status(of: use, with: found.variant.info.freshness, from: found.tier)
    return VariantResult(variant: found.variant, status: status, timings: timings)
  }

  /// Returns the cache status of a response from `tier`.
  func status(
    of use: EntryUse, with freshness: Freshness, from tier: CacheStatus.Tier
  ) -> CacheStatus { staleness.status(of: use, with: freshness, from: tier) }

  /// Returns what `response` would answer with an entry of a tier.
  func plan(with found: PlannedEntry?, from tier: CacheStatus.Tier) -> PlannedOutcome {
    guard let found else { return .next("absent") }
    guard let use = found.use else { return .next("the entry may not be used without the origin") }
    let status = status(of: use, with: found.info.freshness, from: tier)
    return .response(status.headerValue, use.staleReason.map(\.text) ?? "a fresh entry")
  }

  /// Counts a participant's request for the variant of its flight. The request that started the flight
  /// has been counted when the variant was stored; another one is a second request.
  func countRequest(_ demand: VariantDemand, for variant: Variant) {
    if demand != .first { cache.admit(variant, for: demand) }
  }

  private func cached(
    _ variant: Variant, tier: CacheStatus.Tier, for request: ImageRequest
  ) -> CachedVariant {
    CachedVariant(
      variant: variant, tier: tier, use: staleness.use(of: variant.info.freshness, by: request))
  }
}

extension LoadOptions {
  /// Returns the demand of a request with these options.
  ///
  /// - Parameter isRepeated: whether its key was asked for before.
  func demand(isRepeated: Bool = false) -> VariantDemand {
    isFreeForm ? isRepeated ? .repeated : .first : .vouched
  }
}
