// WatermarkStep: loads the watermark of a miss.

import Model

/// Loads the watermark, if the request has one.
struct WatermarkStep: MissStep {
  let watermarks: WatermarkLoader

  func run(_ miss: inout Miss) async throws(ImageError) -> StepOutcome {
    if let loaded = try await watermarks.watermark(of: miss.request, for: miss.participant) {
      miss.timings.add(loaded.timings)
      miss.watermark = loaded.source
    }
    return .next
  }
}
