// NegativeCacheStep: ends a miss whose rendering failed before.

import Model

/// Throws the remembered failure to render a variant. Failures to load are answered only when the
/// source has to be loaded.
struct NegativeCacheStep: MissStep {
  let failures: NegativeCache

  func run(_ miss: inout Miss) async throws(ImageError) -> StepOutcome {
    if let failure = failures.failure(of: miss.request, at: .rendering) { throw failure }
    return .next
  }
}
