// RenewalStep: renews a stale variant whose source and watermark have not changed.

import Model

/// Gives the cached variant the freshness of its source, if it can be renewed (`Miss.renewable`).
struct RenewalStep: MissStep {
  let name = "renewal"

  func plan(_ plan: inout MissPlan) async -> PlannedOutcome {
    if plan.source?.known == nil, plan.hasEntry {
      return .next("the variant is renewed if neither source nor watermark has changed")
    }
    return .next(plan.renewable == nil ? "" : "the variant gets the freshness of its source")
  }

  func run(_ miss: inout Miss) async throws(ImageError) -> StepOutcome {
    guard let source = miss.loaded?.source, let cached = miss.renewable else { return .next }
    var info = cached.info
    info.freshness = source.freshness.combined(with: miss.watermark)
    miss.made = NewVariant(
      variant: Variant(key: cached.key, info: info, body: cached.body), making: .renewed)
    return .next
  }
}
