// StaleReuseStep: serves the cached variant if its source is just as stale.

import Model

/// Answers with the cached variant if the source is stale, too. Rendering again would gain nothing.
struct StaleReuseStep: MissStep {
  let now: @Sendable () -> UnixTime

  let name = "stale-reuse"

  func plan(_ plan: inout MissPlan) async -> PlannedOutcome {
    guard let source = plan.source, let stale = source.stale, let known = source.known,
      let found = plan.onDisk ?? plan.inMemory, known.version != 0,
      found.variant?.sourceVersion == known.version,
      found.info.freshness == known.info.freshness
    else { return .next("") }
    let status = LoadedSource.status(
      forward: source.forward, stale: stale, originStatus: nil, freshness: known.info.freshness,
      from: plan.onDisk == nil ? .memory : .disk, replacesEntry: true, isStored: false,
      isCollapsed: false, at: now())
    return .response(status.headerValue, "the source is just as stale")
  }

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
