// LeaseStep: makes a variant once in the fleet.

import Model

/// Takes the lease of the variant, unless `SharedStep` has it, or answers with what another machine makes meanwhile.
/// `VariantService` ends the lease.
///
/// A machine that has the source does not wait: rendering costs less, and the other's source may be of other bytes.
struct LeaseStep: MissStep {
  let lookup: VariantLookup
  let shared: SharedStep
  let failures: NegativeCache

  let name = "lease"

  func plan(_ plan: inout MissPlan) async -> PlannedOutcome {
    guard lookup.shares, shared.mayLease(plan.request) else { return .next("") }
    return .next("one machine makes the variant; others wait for it")
  }

  func run(_ miss: inout Miss) async throws(ImageError) -> StepOutcome {
    let request = miss.request
    guard lookup.shares, miss.heldSource == nil, miss.fleetLease == nil, shared.mayLease(request)
    else { return .next }
    let waits = await !shared.hasSource(of: request)
    // Without the source nothing is made that others could wait for.
    if waits, failures.failure(of: request, at: .loading) != nil { return .next }
    let moment = failures.moment
    let outcome = await lookup.lease(of: request, waits: waits) { [shared] in
      await shared.accepts($0, for: request)
    }
    switch outcome {
    case .none: return .next
    case .failed(let failure):
      await shared.list(failure, of: miss, since: moment)
      if let failure = failures.failure(of: request, at: .rendering) { throw failure }
      return .next
    case .held(let lease):
      miss.fleetLease = lease
      return .next
    case .shared(let variant):
      guard
        let response = lookup.response(withShared: variant, to: request, timings: miss.timings)
      else { return .next }
      shared.keep(variant, for: request)
      return .response(response)
    }
  }
}
