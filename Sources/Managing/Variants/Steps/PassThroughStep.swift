// PassThroughStep: uses the source as the variant if it needs no processing.

import Model

/// Passes the source through, if the request asks for no change and its head shows none is needed.
struct PassThroughStep: MissStep {
  let sources: PassThroughSources

  let name = "pass-through"

  func plan(_ plan: inout MissPlan) async -> PlannedOutcome {
    guard plan.renewable == nil, sources.format(for: plan.request) != nil else { return .next("") }
    return .next("the source is the response, if its head shows that nothing has to change")
  }

  func run(_ miss: inout Miss) async throws(ImageError) -> StepOutcome {
    guard miss.made == nil, let source = miss.loaded?.source,
      let variant = try await sources.variant(
        from: source, for: miss.request, participant: miss.participant)
    else { return .next }
    miss.made = NewVariant(variant: variant, making: .passedThrough)
    return .next
  }
}
