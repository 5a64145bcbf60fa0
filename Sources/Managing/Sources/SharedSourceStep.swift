// SharedSourceStep: sources that another machine has, or loads.

import Model
import Platform

/// Looks for a source in the shared tier before its origin is asked, so that a fleet loads each once.
struct SharedSourceStep: Sendable {
  private let shared: (any SharedSources)?
  private let store: SourceStore
  private let staleness: Staleness
  private let validity: EntryValidity

  /// - Parameter shared: the sources that machines share; `nil` without a bucket for them.
  init(
    shared: (any SharedSources)?, store: SourceStore, staleness: Staleness, validity: EntryValidity
  ) {
    self.shared = shared
    self.store = store
    self.staleness = staleness
    self.validity = validity
  }

  /// Whether another machine's source may answer a request. A retry asks the origin, since the shared source may be what
  /// failed.
  func applies(to request: ImageRequest) -> Bool {
    shared != nil && request.options.cache.readsCache && request.options.cache != .only
      && !request.options.retriesFailed
      && VariantCache.mayBeShared(request.key.source)
  }

  /// Returns another machine's fresh source after it is stored here, or the lease of the download. The origin is asked
  /// otherwise, and if this machine has an upload in place of the source, or a source that is not older.
  ///
  /// - Parameters:
  ///   - cached: this machine's source, which is too old.
  ///   - start: the start of the load.
  ///   - timings: the time that the flight has spent so far.
  func find(
    _ request: ImageRequest, replacing cached: Source?, since start: EntryValidity.LoadStart,
    timings: Timings
  ) async -> LeaseOutcome<LoadedSource> {
    guard let shared, applies(to: request), cached?.origin.isUploaded != true else { return .none }
    let outcome = await shared.source(
      SharedSourceRequest(
        key: request.key.source, generation: { [validity] in validity.generation },
        accepts: { [staleness] freshness in
          staleness.use(of: freshness, by: request) == .fresh
            && freshness.receivedAt >= cached?.freshness.receivedAt ?? freshness.receivedAt
        }))
    switch outcome {
    case .none: return .none
    case .failed(let failure): return .failed(failure)
    case .held(let lease): return .held(lease)
    case .shared(let source):
      // A load before a purge does not answer a request after it.
      guard !validity.isPurged(source) else { return .none }
      staleness.endBackoff(of: source.key)
      let isStored = await store.replace(
        cached, with: source, for: request, since: start, isFromFleet: true)
      return .shared(
        LoadedSource(
          source: source, forward: nil, originStatus: nil, isStored: isStored, timings: timings))
    }
  }
}
