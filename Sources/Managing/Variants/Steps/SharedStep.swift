// SharedStep: answers from the shared tier.

import Model
import Platform

/// Answers a miss with a fresh variant that another machine has rendered, and stores it in this machine's tiers.
struct SharedStep: MissStep {
  private let lookup: VariantLookup
  private let candidates: Lock<DerivationCandidates>

  init(lookup: VariantLookup, candidates: Lock<DerivationCandidates>) {
    self.lookup = lookup
    self.candidates = candidates
  }

  let name = "shared"

  func plan(_ plan: inout MissPlan) async -> PlannedOutcome {
    guard lookup.shares, applies(to: plan.request) else { return .next("") }
    guard let found = await lookup.shared(plan.request), found.use == .fresh,
      let result = lookup.response(with: found, timings: Timings())
    else { return .next("absent") }
    return .response(result.status.headerValue, "a fresh entry of another machine")
  }

  func run(_ miss: inout Miss) async throws(ImageError) -> StepOutcome {
    let request = miss.request
    guard lookup.shares, miss.lease == nil, applies(to: request),
      let found = await lookup.shared(request), found.use == .fresh,
      let response = lookup.response(with: found, timings: miss.timings)
    else { return .next }
    lookup.keepShared(found.variant, for: request)
    candidates.withLock { $0.note(found.variant, of: request.transform) }
    return .response(response)
  }

  private func applies(to request: ImageRequest) -> Bool {
    request.options.cache.readsCache && !request.options.isRevalidation
      && VariantCache.mayBeShared(request.key)
  }
}
