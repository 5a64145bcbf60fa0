// SourceFetcher: loads or revalidates a source at its origin, and stores the result.

import Model
import Platform

/// Asks origins for sources.
struct SourceFetcher: Sendable {
  let loader: any ImageLoader
  private let store: SourceStore
  private let freshness: FreshnessEvaluator
  private let staleness: Staleness

  init(
    loader: any ImageLoader, store: SourceStore, freshness: FreshnessEvaluator, staleness: Staleness
  ) {
    self.loader = loader
    self.store = store
    self.freshness = freshness
    self.staleness = staleness
  }

  /// Returns the validators of a conditional request; `nil` for an unconditional one.
  func validators(of cached: Source?, for request: ImageRequest) -> Validators? {
    request.options.cache == .bypass ? nil : cached.flatMap { Validators($0.origin) }
  }

  /// Loads the source of a request from its origin, with a conditional request if a cached source
  /// has validators.
  ///
  /// - Parameters:
  ///   - participant: the flight's participant, which brings the priority and receives the body.
  ///   - cached: the cached source, if any.
  ///   - start: the start of the load, before the first look-up.
  ///   - timings: the time that the flight has spent so far.
  ///   - onHead: called with the freshness of a response when its head arrives, on the loader's
  ///     thread; must not block.
  func fetch(
    _ request: ImageRequest, for participant: FlightParticipant, replacing cached: Source?,
    since start: EntryValidity.LoadStart, timings: Timings,
    onHead: @escaping @Sendable (Freshness) -> Void
  ) async throws(ImageError) -> LoadedSource {
    let options = request.options
    let forward = CacheStatus.Forward(of: request, hasEntry: cached != nil)
    let result = try await loader.load(
      LoadRequest(
        url: request.source, validators: validators(of: cached, for: request),
        priority: participant,
        forwarded: request.forwarded, trail: options.trail, trace: options.trace,
        onHead: { [freshness] in onHead(freshness.freshness(of: $0, for: request)) },
        onBody: { participant.announce(FlightBody(body: $0, forward: forward)) }))
    var timings = timings
    let source: Source
    let status: Int
    switch result {
    case .fetched(let download):
      timings.add(download.timings)
      status = download.origin.status
      source = Source(
        key: request.key.source, file: download.file, origin: download.origin,
        freshness: freshness.freshness(of: download.origin, for: request),
        version: download.version, generation: start.generation)
    case .notModified(let origin, let spent):
      guard let cached else { throw .internal(detail: "a 304 without a cached source") }
      timings.add(spent)
      status = 304
      let updated = cached.origin.updated(by: origin)
      source = Source(
        key: request.key.source, file: cached.file, origin: updated,
        freshness: freshness.freshness(of: updated, for: request),
        version: cached.version, generation: cached.generation)
    }
    staleness.endBackoff(of: source.key)
    let isStored = await store.replace(cached, with: source, for: request, since: start)
    return LoadedSource(
      source: source, forward: forward,
      originStatus: request.source.scheme == .local ? nil : status, isStored: isStored,
      timings: timings)
  }
}

extension CacheStatus.Forward {
  /// Why a request is forwarded to the origin.
  ///
  /// - Parameter hasEntry: whether the source is cached.
  init(of request: ImageRequest, hasEntry: Bool) {
    let options = request.options
    guard options.cache.readsCache, options.age == AgeDemands() else {
      self = .request
      return
    }
    self = hasEntry ? .stale : .uriMiss
  }
}

extension OriginResponse {
  /// Returns this response with the fields that a 304 response updates (RFC 9111, section 4.3.4).
  fileprivate func updated(by newer: OriginResponse) -> OriginResponse {
    var updated = self
    func take(_ path: WritableKeyPath<OriginResponse, String?>) {
      if let value = newer[keyPath: path] { updated[keyPath: path] = value }
    }
    take(\.cacheControl)
    take(\.expires)
    take(\.lastModified)
    take(\.etag)
    take(\.vary)
    // Age and date belong to the response, not to the source. Old values would add the age twice.
    updated.age = newer.age
    updated.date = newer.date
    // The times and the redirects of the latest request.
    updated.exchange = newer.exchange
    updated.redirects = newer.redirects
    return updated
  }
}
