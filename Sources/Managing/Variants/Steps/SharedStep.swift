// SharedStep: answers from the shared tier.

import Model
import Platform

/// Answers a miss with a fresh variant that another machine has rendered, and stores it in this machine's tiers.
struct SharedStep: MissStep {
  let lookup: VariantLookup
  let sources: SourceStore
  let candidates: Lock<DerivationCandidates>

  let name = "shared"

  func plan(_ plan: inout MissPlan) async -> PlannedOutcome {
    guard lookup.shares, applies(to: plan.request) else { return .next("") }
    guard let found = await find(plan.request),
      let result = lookup.response(with: found, timings: Timings())
    else { return .next("absent, or this machine has another source") }
    return .response(result.status.headerValue, "a fresh entry of another machine")
  }

  func run(_ miss: inout Miss) async throws(ImageError) -> StepOutcome {
    let request = miss.request
    guard lookup.shares, miss.heldSource == nil, applies(to: request),
      let found = await find(request),
      let response = lookup.response(with: found, timings: miss.timings)
    else { return .next }
    lookup.keepShared(found.variant, for: request)
    candidates.withLock { $0.note(found.variant, of: request.transform) }
    return .response(response)
  }

  /// Whether machines may share the answer to a request.
  private func applies(to request: ImageRequest) -> Bool {
    request.options.cache.readsCache && !request.options.isRevalidation
      && VariantCache.mayBeShared(request.key)
      && request.transform.watermark?.source.scheme != .local
  }

  /// Returns the fresh variant, unless this machine knows better.
  private func find(_ request: ImageRequest) async -> CachedVariant? {
    guard let found = await lookup.shared(request), found.use == .fresh,
      !(await isOutdated(found.variant, for: request))
    else { return nil }
    return found
  }

  /// Whether this machine has an upload in place of the source or the watermark, or other bytes of the
  /// source that are not older.
  private func isOutdated(_ variant: Variant, for request: ImageRequest) async -> Bool {
    let watermark = request.transform.watermark?.key
    if let watermark, await stored(watermark)?.origin.isUploaded == true { return true }
    guard let own = await stored(request.key.source) else { return false }
    if own.origin.isUploaded { return true }
    // A variant with a watermark may have the time of the watermark.
    return own.version != variant.info.sourceVersion
      && (watermark != nil || own.receivedAt >= variant.info.freshness.receivedAt)
  }

  private func stored(
    _ key: CacheKey
  ) async -> (origin: OriginResponse, version: UInt64, receivedAt: UnixTime)? {
    guard let entry = await sources.entry(of: key),
      case .source(let origin, let version) = entry.stored
    else { return nil }
    return (origin, version, entry.freshness.receivedAt)
  }
}
