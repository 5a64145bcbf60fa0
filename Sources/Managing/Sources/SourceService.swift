// SourceService: returns sources, each loaded once for all requests that need it.

import Model
import Platform
import Telemetry

/// Returns sources from the disk tier or from their origins. Flights coalesce requests by source
/// key.
final class SourceService: Sendable {
  private let flights = Flights<SourceFlightKey, LoadedSource>()
  private let store: SourceStore
  private let fetcher: SourceFetcher
  private let failures: NegativeCache
  private let staleness: Staleness
  private let staleOnError: StaleOnError
  private let revalidator: Revalidator
  private let validity: EntryValidity
  private let clock: ClockMonitor

  init(
    store: SourceStore, fetcher: SourceFetcher, failures: NegativeCache,
    staleness: Staleness,
    revalidator: Revalidator, validity: EntryValidity, clock: ClockMonitor
  ) {
    self.store = store
    self.fetcher = fetcher
    self.failures = failures
    self.staleness = staleness
    staleOnError = StaleOnError(sources: store, staleness: staleness)
    self.revalidator = revalidator
    self.validity = validity
    self.clock = clock
  }

  /// Returns the source of a request, from the flight that all requests with the same source key
  /// share, and whether another request had started it.
  func source(
    for request: ImageRequest, participant: FlightParticipant, isDetached: Bool = false
  ) async throws(ImageError) -> (LoadedSource, joined: Bool) {
    let (loaded, joined) = try await flights.value(
      for: SourceFlightKey(request), participant: participant, isDetached: isDetached
    ) { participant async throws(ImageError) in
      try await self.findOrFetch(request, for: participant)
    }
    // A joined flight may have used a cached source that is too old for this request.
    if joined, loaded.forward == nil,
      staleness.use(of: loaded.source.freshness, by: request) == nil
    {
      guard request.options.cache != .only else { throw .notCached }
      var fresh = request
      fresh.options.cache = .refresh
      return try await source(for: fresh, participant: participant, isDetached: isDetached)
    }
    if joined, !loaded.isStored { _ = store.store(loaded.source, for: request) }
    return (loaded, joined)
  }

  /// Closes the flights of matching keys to new participants.
  func retireFlights(where matches: (CacheKey) -> Bool) {
    flights.retire { matches($0.key) }
  }

  /// Cancels all flights. Returns the number of waiting requests.
  func cancelAll() -> Int { flights.cancelAll(.revoked) }

  /// The number of detached flights that run without waiters.
  var unattendedCount: Int { flights.unattendedCount }

  /// Adds the current flights and counts to `figures`.
  func add(to figures: inout Figures) { flights.add(to: &figures, kind: "source") }

  /// Returns the source of a request: cached, revalidated or downloaded.
  private func findOrFetch(
    _ request: ImageRequest, for participant: FlightParticipant
  ) async throws(ImageError) -> LoadedSource {
    let key = request.key.source
    let start = validity.loadStart(of: key)
    var timings = Timings()
    let isLocal = request.source.scheme == .local
    let cached = isLocal ? nil : await timings.measureDisk { await store.source(for: key) }
    if let cached, let use = staleness.use(of: cached.freshness, by: request) {
      return LoadedSource(
        source: cached, forward: nil, originStatus: nil, stale: use.staleReason, isStored: true,
        timings: timings)
    }
    if let refusal = refusal(of: request) { throw refusal }
    if let cached { clock.note(cached.freshness) }
    let responseFreshness = Lock<Freshness?>(nil)
    do throws(ImageError) {
      if let loaded = try await revalidated(request, for: participant, since: start) {
        return loaded
      }
      return try await fetcher.fetch(
        request, for: participant, replacing: cached, since: start, timings: timings,
        onHead: { freshness in
          responseFreshness.withLock { $0 = freshness }
          // Closes the flight before the first byte of a body that must not be shared.
          if !freshness.isStorable { participant.close() }
        })
    } catch {
      // Looking at a file again costs as little as remembering that it was not there.
      guard !isLocal else { throw error }
      let failure = failures.add(
        error, of: key, since: start.generation, freshness: responseFreshness.withLock { $0 })
      guard let cached,
        await staleOnError.allows(
          cached.freshness, version: cached.version, insteadOf: error, to: request,
          isCurrent: { validity.isCurrent(cached) })
      else { throw failure }
      return LoadedSource(
        source: cached, forward: .stale, originStatus: error.originStatus, stale: .ifError,
        isStored: true, timings: timings)
    }
  }

  /// Returns the error of a request that may not ask the origin: it asked for cached responses only,
  /// or the load failed before. Reading a local file does not use the network.
  func refusal(of request: ImageRequest) -> ImageError? {
    guard request.options.cache != .only || request.source.scheme == .local else {
      return .notCached
    }
    return failures.failure(of: request, at: .loading)
  }

  // MARK: Explaining

  /// Returns the metadata of the source on disk.
  func entry(of key: CacheKey) async -> CacheEntryInfo? { await store.entry(of: key) }

  /// Returns how a cached source may satisfy a request. See `Staleness`.
  func use(of freshness: Freshness, by request: ImageRequest) -> EntryUse? {
    staleness.use(of: freshness, by: request)
  }

  /// Returns whether a cached entry would be served in place of an error that is certain.
  func replaces(
    _ error: ImageError, with freshness: Freshness, for request: ImageRequest
  ) -> Bool {
    error.letsStaleBeServed && staleness.servesOnError(freshness, to: request)
  }

  /// Returns what would happen to a load now.
  func outlook(for request: ImageRequest) async -> LoadOutlook? {
    await fetcher.loader.outlook(for: request.source)
  }

  /// Returns the running work on the source of a request, which the request would share.
  func running(for request: ImageRequest) -> Explanation.Flights {
    var running = Explanation.Flights()
    running.source = flights.waiters(of: SourceFlightKey(request))
    running.isRevalidating = revalidator.runningRequest(for: request) != nil
    return running
  }

  /// Returns the source from a running revalidation, for a request that cannot use it stale.
  /// Returns `nil` if no running revalidation satisfies the request.
  private func revalidated(
    _ request: ImageRequest, for participant: FlightParticipant,
    since start: EntryValidity.LoadStart
  ) async throws(ImageError) -> LoadedSource? {
    guard let revalidation = revalidator.runningRequest(for: request) else { return nil }
    let (loaded, _) = try await source(for: revalidation, participant: participant)
    // A revalidation that began before a purge does not satisfy requests made after the purge.
    guard loaded.source.generation >= start.generation || !validity.isPurged(loaded.source) else {
      return nil
    }
    return loaded
  }
}

extension Timings {
  /// Performs a read of the disk tier and adds its duration.
  mutating func measureDisk<Value>(_ read: () async -> Value) async -> Value {
    let start = ContinuousClock.now
    let value = await read()
    disk = (disk ?? .zero) + (.now - start)
    return value
  }
}
