// StaleReuseStep: serves the cached variant if its source is just as stale.

import Model

/// Answers with the cached variant if the source is stale, too. Rendering again would gain nothing.
struct StaleReuseStep: MissStep {
  let now: @Sendable () -> UnixTime

  func run(_ miss: inout Miss) async throws(ImageError) -> StepOutcome {
    guard let loaded = miss.loaded, loaded.stale != nil,
      let found = miss.onDisk ?? miss.inMemory, found.isRendered(from: loaded.source),
      found.info.freshness == loaded.source.freshness
    else { return .next }
    let status = loaded.status(
      from: miss.onDisk == nil ? .memory : .disk, replacesEntry: true, isStored: false,
      isCollapsed: miss.isCollapsed, at: now())
    return .response(VariantResult(variant: found, status: status, timings: miss.timings))
  }
}
