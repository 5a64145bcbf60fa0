// NegativeCacheStep: ends a miss whose rendering failed before.

import Model

/// Throws a remembered failure to render, of the variant or of its source, unless the request
/// retries failures. `SourceService` throws remembered failures to load, before a download.
struct NegativeCacheStep: MissStep {
  let failures: NegativeCache

  func run(_ miss: inout Miss) async throws(ImageError) -> StepOutcome {
    if let failure = failures.failure(of: miss.request, at: .rendering) { throw failure }
    return .next
  }
}
