// FallbackFormatStep: answers in a faster format while the AVIF is encoded in the background.

import Model

/// Decides whether a request that would wait for an AVIF gets a faster format first.
///
/// The step runs twice:
/// - Before the source is loaded, if no tier has a variant.
/// - After it and the watermark are loaded, if the cached variant cannot be renewed.
struct FallbackFormatStep: MissStep {
  let policy: AVIFPolicy

  let name = "fallback-format"

  func plan(_ plan: inout MissPlan) async -> PlannedOutcome {
    guard let fallback = policy.fallback(for: plan.request) else { return .next("") }
    let why = "a faster format first; the AVIF is encoded in the background"
    guard let source = plan.source else {
      return plan.hasEntry ? .next("") : .fallback(fallback, why)
    }
    // Of a source that is not loaded yet, nothing is known.
    guard let known = source.known, known.info.freshness.isStorable, plan.renewable == nil else {
      return .next("")
    }
    return .fallback(fallback, why)
  }

  func run(_ miss: inout Miss) async throws(ImageError) -> StepOutcome {
    guard let fallback = policy.fallback(for: miss.request) else { return .next }
    guard let loaded = miss.loaded else {
      return miss.hasEntry ? .next : .fallback(fallback, miss.heldSource)
    }
    guard loaded.source.freshness.isStorable, miss.renewable == nil else { return .next }
    return .fallback(fallback, HeldSource(loaded))
  }
}
