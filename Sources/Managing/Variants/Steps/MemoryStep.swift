// MemoryStep: answers from memory.

import Model

/// Answers a miss from memory. Another flight may have stored the variant between the request's
/// own look-up and its flight.
struct MemoryStep: MissStep {
  let lookup: VariantLookup

  let name = "memory"

  func plan(_ plan: inout MissPlan) async -> PlannedOutcome {
    lookup.plan(with: plan.inMemory, from: .memory)
  }

  func run(_ miss: inout Miss) async throws(ImageError) -> StepOutcome {
    guard let found = lookup.inMemory(miss.request) else { return .next }
    miss.inMemory = found.variant
    return lookup.response(with: found, timings: miss.timings).map { .response($0) } ?? .next
  }
}
