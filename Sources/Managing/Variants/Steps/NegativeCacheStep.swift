// NegativeCacheStep: ends a miss whose rendering failed before.

import Model

/// Throws a remembered failure to render, of the variant or of its source, unless the request
/// retries failures. `SourceService` throws remembered failures to load, before a download.
struct NegativeCacheStep: MissStep {
  let failures: NegativeCache

  let name = "negative-cache"

  func plan(_ plan: inout MissPlan) async -> PlannedOutcome {
    guard let failure = failures.failure(of: plan.request, at: .rendering) else {
      return .next("no remembered failure to render")
    }
    return .failure(failure, "a remembered failure: \(failure.code)")
  }

  func run(_ miss: inout Miss) async throws(ImageError) -> StepOutcome {
    if let failure = failures.failure(of: miss.request, at: .rendering) { throw failure }
    return .next
  }
}
