// DiskStep: answers from the disk tier.

import Model
import Platform

/// Answers a miss from disk. Promotes a variant that was read into memory, and notes it as a derivation
/// candidate. Keeps a variant that is too stale in `miss.onDisk`, for renewal.
struct DiskStep: MissStep {
  private let lookup: VariantLookup
  private let candidates: Lock<DerivationCandidates>

  init(lookup: VariantLookup, candidates: Lock<DerivationCandidates>) {
    self.lookup = lookup
    self.candidates = candidates
  }

  let name = "disk"

  func plan(_ plan: inout MissPlan) async -> PlannedOutcome {
    lookup.plan(with: plan.onDisk, from: .disk)
  }

  func run(_ miss: inout Miss) async throws(ImageError) -> StepOutcome {
    let request = miss.request
    // A refresh reads the entry too, because it may be renewed. A bypass ignores it.
    guard request.options.cache != .bypass,
      let found = await miss.timings.measureDisk({ await lookup.onDisk(request) })
    else { return .next }
    miss.onDisk = found.variant
    guard let response = lookup.response(with: found, timings: miss.timings) else { return .next }
    if case .memory = found.variant.body { lookup.promote(found.variant, for: request) }
    candidates.withLock { $0.note(found.variant, of: request.transform) }
    return .response(response)
  }
}
