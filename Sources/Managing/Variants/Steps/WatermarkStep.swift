// WatermarkStep: loads the watermark of a miss.

import Model

/// Loads the watermark, if the request has one.
struct WatermarkStep: MissStep {
  let watermarks: WatermarkLoader

  let name = "watermark"

  func plan(_ plan: inout MissPlan) async -> PlannedOutcome {
    await watermarks.plan(of: plan.request)
  }

  func run(_ miss: inout Miss) async throws(ImageError) -> StepOutcome {
    if let loaded = try await watermarks.watermark(of: miss.request, for: miss.participant) {
      miss.timings.add(loaded.timings)
      miss.watermark = loaded.source
    }
    return .next
  }
}
