// StoreStep: stores the new variant of a miss and answers with it.

import Model
import Platform

/// Stores the new variant in the tiers that the request allows, and answers with it.
struct StoreStep: MissStep {
  private let cache: VariantCache
  private let failures: NegativeCache
  private let candidates: Lock<DerivationCandidates>
  private let requests: RenderRequests
  private let now: @Sendable () -> UnixTime

  init(
    cache: VariantCache, failures: NegativeCache, candidates: Lock<DerivationCandidates>,
    requests: RenderRequests,
    now: @escaping @Sendable () -> UnixTime
  ) {
    self.cache = cache
    self.failures = failures
    self.candidates = candidates
    self.requests = requests
    self.now = now
  }

  let name = "store"

  func plan(_ plan: inout MissPlan) async -> PlannedOutcome {
    guard let source = plan.source else { return .next("") }
    let tier: CacheStatus.Tier =
      plan.renewable == nil ? .source : plan.inMemory == nil ? .disk : .memory
    let tiers = plan.request.options.store
    let why = tiers.isEmpty ? "stores nothing, as the request demands" : "stores the variant"
    guard let known = source.known else {
      let forward = LoadedSource.forward(source.forward ?? .uriMiss, replacesEntry: plan.hasEntry)
      // The origin's status and whether a tier accepts the variant are not known yet.
      return .response("pictor; fwd=\(forward.rawValue)", why)
    }
    let status = LoadedSource.status(
      forward: source.forward, stale: source.stale, originStatus: nil,
      freshness: known.info.freshness, from: tier, replacesEntry: plan.hasEntry, isStored: false,
      isCollapsed: false, at: now())
    return .response(status.headerValue, why)
  }

  func run(_ miss: inout Miss) async throws(ImageError) -> StepOutcome {
    guard let made = miss.made, let loaded = miss.loaded else { return .next }
    let options = miss.request.options
    if options.retriesFailed { failures.removeFailures(of: miss.request) }
    let variant = made.variant
    var tiers = options.store
    var tier = CacheStatus.Tier.source
    switch made.making {
    // The disk tier already has a passed-through variant as its source.
    case .passedThrough: tiers.formIntersection(.memory)
    case .renewed: tier = miss.inMemory == nil ? .disk : .memory
    case .rendered, .substituted: break
    }
    requests.note(miss.request, of: variant)
    let isStored = await cache.replace(
      miss.onDisk, with: variant, in: tiers,
      for: options.demand(isRepeated: miss.hasEntry))
    if isStored, !variant.info.isDamaged {
      candidates.withLock { $0.note(variant, of: miss.request.transform) }
    }
    let status = loaded.status(
      from: tier, replacesEntry: miss.hasEntry, isStored: isStored, isCollapsed: miss.isCollapsed,
      at: now())
    return .response(VariantResult(variant: variant, status: status, timings: miss.timings))
  }
}
