// SharedStep: answers from the shared tier.

import Model
import Platform

/// Answers a miss with a fresh variant that another machine has rendered, and stores it in this machine's tiers.
///
/// Without one it takes the lease, if that is free, in the same round trip (`LeaseStep`). It lists another machine's
/// failure to load or to decode the source as if it were this machine's: the steps that follow answer with it.
struct SharedStep: MissStep {
  private let lookup: VariantLookup
  private let sources: SourceStore
  private let failures: NegativeCache
  private let candidates: Lock<DerivationCandidates>
  private let avif: AVIFPolicy

  init(
    lookup: VariantLookup, sources: SourceStore, failures: NegativeCache,
    candidates: Lock<DerivationCandidates>, avif: AVIFPolicy
  ) {
    self.avif = avif
    self.lookup = lookup
    self.sources = sources
    self.failures = failures
    self.candidates = candidates
  }

  let name = "shared"

  func plan(_ plan: inout MissPlan) async -> PlannedOutcome {
    guard lookup.shares, applies(to: plan.request) else { return .next("") }
    let found = await find(plan.request, takingLease: false)
    if let variant = found.variant, let result = lookup.response(with: variant, timings: Timings())
    {
      return .response(result.status.headerValue, "a fresh entry of another machine")
    }
    if let failure = found.failure,
      await takes(failure, for: plan.request, hasEntry: plan.hasEntry)
    {
      return .next("another machine remembers a failure: \(failure.error.code)")
    }
    return .next("absent, or this machine has another source")
  }

  func run(_ miss: inout Miss) async throws(ImageError) -> StepOutcome {
    let request = miss.request
    guard lookup.shares, miss.heldSource == nil, applies(to: request) else { return .next }
    let moment = failures.moment
    // A faster format is made in place of an AVIF (`FallbackFormatStep`).
    let isReplaced = !miss.hasEntry && avif.fallback(for: request) != nil
    let found = await find(request, takingLease: mayLease(request) && !isReplaced)
    // `VariantService` ends it in each case.
    miss.fleetLease = found.lease
    if let variant = found.variant,
      let response = lookup.response(with: variant, timings: miss.timings)
    {
      keep(variant.variant, for: request)
      return .response(response)
    }
    if let failure = found.failure { await list(failure, of: miss, since: moment) }
    return .next
  }

  /// Lists another machine's failure here, unless this machine has something to serve or to revalidate.
  ///
  /// - Parameter moment: before the failure was looked up.
  func list(_ failure: SharedFailure, of miss: Miss, since moment: NegativeCache.Moment) async {
    if await takes(failure, for: miss.request, hasEntry: miss.hasEntry) {
      failures.add(failure, since: moment)
    }
  }

  private func takes(
    _ failure: SharedFailure, for request: ImageRequest, hasEntry: Bool
  ) async -> Bool {
    guard !hasEntry, !request.options.retriesFailed else { return false }
    return await sources.entry(of: request.key.source) == nil
  }

  /// Stores a variant of another machine here.
  func keep(_ variant: Variant, for request: ImageRequest) {
    lookup.keepShared(variant, for: request)
    candidates.withLock { $0.note(variant, of: request.transform) }
  }

  /// Whether machines may share the answer to a request.
  func applies(to request: ImageRequest) -> Bool {
    request.options.cache.readsCache && !request.options.isRevalidation
      && VariantCache.mayBeShared(request.key)
      && request.transform.watermark?.source.scheme != .local
  }

  /// Whether the work on an answer is worth a lease: a plain source is not shared as a variant.
  func mayLease(_ request: ImageRequest) -> Bool {
    request.options.cache != .only && request.transform != Transform() && applies(to: request)
  }

  /// Returns the fresh variant, unless this machine knows better, and the failure of the source.
  private func find(
    _ request: ImageRequest, takingLease: Bool
  ) async -> VariantLookup.Shared {
    // A failure that is listed here needs no other.
    let isKnown = [.loading, .rendering].contains { failures.failure(of: request, at: $0) != nil }
    var found = await lookup.shared(
      request, withFailure: !isKnown && !request.options.retriesFailed,
      takingLease: takingLease && !isKnown)
    if let variant = found.variant, !(await accepts(variant, for: request)) { found.variant = nil }
    return found
  }

  /// Whether a shared variant is fresh, and this machine knows no better.
  func accepts(_ found: CachedVariant, for request: ImageRequest) async -> Bool {
    guard found.use == .fresh else { return false }
    return await !isOutdated(found.variant, for: request)
  }

  /// Whether this machine has the source, fresh enough.
  func hasSource(of request: ImageRequest) async -> Bool {
    guard let entry = await sources.entry(of: request.key.source) else { return false }
    return lookup.use(of: entry.freshness, by: request) != nil
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
