// SourceService: returns sources, each loaded once for all requests that need it.

import Core

/// Returns sources from the disk tier or from their origins. Flights coalesce requests by source
/// key.
final class SourceService: Sendable {
  let flights = Flights<SourceFlightKey, LoadedSource>()
  private let parts: ManagerParts

  init(_ parts: ManagerParts) { self.parts = parts }

  /// Returns the source of a request, from the flight that all requests with the same source key
  /// share, and whether another request had started it.
  ///
  /// - Parameter step: the step's name in an explanation.
  func source(
    for request: ImageRequest, with effects: Effects, isDetached: Bool = false,
    noting step: String = "source"
  ) async throws(ImageError) -> (LoadedSource, joined: Bool) {
    guard let participant = effects.participant else {
      return (try await findOrFetch(request, with: effects, noting: step), false)
    }
    let (loaded, joined) = try await flights.value(
      for: SourceFlightKey(request), participant: participant, isDetached: isDetached
    ) { participant async throws(ImageError) in
      try await self.findOrFetch(request, with: .allowed(participant), noting: step)
    }
    // A joined flight may have used a cached source that is too old for this request.
    if joined, loaded.forward == nil,
      parts.staleness.use(of: loaded.source.freshness, by: request) == nil
    {
      guard request.options.cache != .only else { throw .notCached }
      var fresh = request
      fresh.options.cache = .refresh
      return try await source(for: fresh, with: effects, isDetached: isDetached)
    }
    if joined, !loaded.isStored { _ = parts.store.store(loaded.source, for: request) }
    return (loaded, joined)
  }

  /// Returns the running work on the source of a request, which the request would share.
  func running(for request: ImageRequest) -> Explanation.Flights {
    var running = Explanation.Flights()
    running.source = flights.waiters(of: SourceFlightKey(request))
    running.isRevalidating = parts.revalidator.runningRequest(for: request) != nil
    return running
  }

  // MARK: A load

  /// Returns the source of a request: cached, revalidated or downloaded.
  private func findOrFetch(
    _ request: ImageRequest, with effects: Effects, noting step: String
  ) async throws(ImageError) -> LoadedSource {
    let key = request.key.source
    let start = parts.validity.loadStart(of: key)
    var timings = Timings()
    let isLocal = request.source.scheme == .local
    let cached =
      isLocal
      ? nil
      : await timings.measureDisk {
        await parts.store.source(for: key, isUse: effects.trace == nil)
      }
    if let cached, let use = parts.staleness.use(of: cached.freshness, by: request) {
      effects.note(
        step, use.staleReason.map { "the source on disk, \($0.text)" } ?? "a fresh source on disk")
      return LoadedSource(
        source: cached, forward: nil, originStatus: nil, stale: use.staleReason, isStored: true,
        timings: timings)
    }
    // Not from the cache alone, and not a load that failed before. A local file needs no network.
    if request.options.cache == .only, !isLocal { throw .notCached }
    if let failure = parts.failures.failure(of: request, at: .loading) { throw failure }
    let responseFreshness = Lock<Freshness?>(nil)
    do throws(ImageError) {
      guard let participant = effects.participant else {
        return try await foresee(request, replacing: cached, effects, noting: step)
      }
      if let cached { parts.clock.note(cached.freshness) }
      if let loaded = try await revalidated(request, with: effects, since: start) { return loaded }
      return try await fetch(
        request, for: participant, replacing: cached, since: start, timings: timings,
        onHead: { freshness in
          responseFreshness.withLock { $0 = freshness }
          // Closes the flight before the first byte of a body that must not be shared.
          if !freshness.isStorable { participant.close() }
        })
    } catch {
      // Looking at a file again costs as little as remembering that it was not there.
      guard !isLocal else { throw error }
      let failure =
        effects.trace != nil
        ? error
        : parts.failures.add(
          error, of: key, since: start.generation, freshness: responseFreshness.withLock { $0 })
      guard let cached,
        await allowsStale(
          cached.freshness, version: cached.version, insteadOf: error, to: request, effects,
          isCurrent: { parts.validity.isCurrent(cached) })
      else { throw failure }
      effects.note(step, "a load would fail: \(error.code)")
      return LoadedSource(
        source: cached, forward: .stale, originStatus: error.originStatus, stale: .ifError,
        isStored: true, timings: timings)
    }
  }

  /// Returns the unknown source of an explained request that would ask the origin.
  ///
  /// - Throws: the error with which a load is certain to fail.
  private func foresee(
    _ request: ImageRequest, replacing cached: Source?, _ effects: Effects, noting step: String
  ) async throws(ImageError) -> LoadedSource {
    let running = running(for: request)
    if running.isRevalidating {
      effects.note(step, "waits for a running revalidation")
    } else if running.source > 0 {
      effects.note(step, "joins a running load of the source")
    } else if let error = await parts.loader.outlook(for: request.source)?.error {
      throw error
    } else if request.source.scheme == .local {
      effects.note(step, "reads the local file")
    } else {
      let isConditional = validators(of: cached, for: request) != nil
      effects.note(
        step,
        isConditional ? "revalidates the source at its origin" : "downloads the source")
    }
    if running.isRevalidating || running.source > 0 { effects.trace?.collapse() }
    return LoadedSource(
      source: .unknown(request.key.source),
      forward: CacheStatus.Forward(of: request, hasEntry: cached != nil), originStatus: nil,
      isStored: false, timings: Timings())
  }

  /// Returns the validators of a conditional request; `nil` for an unconditional one.
  private func validators(of cached: Source?, for request: ImageRequest) -> Validators? {
    request.options.cache == .bypass ? nil : cached.flatMap { Validators($0.origin) }
  }

  /// Loads the source of a request from its origin, with a conditional request if a cached source
  /// has validators.
  ///
  /// - Parameters:
  ///   - participant: the flight's participant, which brings the priority and receives the body.
  ///   - start: the start of the load, before the first look-up.
  ///   - onHead: called with the freshness of a response when its head arrives, on the loader's
  ///     thread; must not block.
  private func fetch(
    _ request: ImageRequest, for participant: FlightParticipant, replacing cached: Source?,
    since start: EntryValidity.LoadStart, timings: Timings,
    onHead: @escaping @Sendable (Freshness) -> Void
  ) async throws(ImageError) -> LoadedSource {
    let options = request.options
    let forward = CacheStatus.Forward(of: request, hasEntry: cached != nil)
    let result = try await parts.loader.load(
      LoadRequest(
        url: request.source, body: request.body,
        validators: validators(of: cached, for: request),
        priority: participant,
        forwarded: request.forwarded, trail: options.trail, trace: options.trace,
        onHead: { [freshness = parts.freshness] in onHead(freshness.freshness(of: $0, for: request))
        },
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
        freshness: parts.freshness.freshness(of: download.origin, for: request),
        version: download.version, generation: start.generation)
    case .notModified(let origin, let spent):
      guard let cached else { throw .internal(detail: "a 304 without a cached source") }
      timings.add(spent)
      status = 304
      let updated = cached.origin.updated(by: origin)
      source = Source(
        key: request.key.source, file: cached.file, origin: updated,
        freshness: parts.freshness.freshness(of: updated, for: request),
        version: cached.version, generation: cached.generation)
    }
    parts.staleness.endBackoff(of: source.key)
    let isStored = await parts.store.replace(cached, with: source, for: request, since: start)
    return LoadedSource(
      source: source, forward: forward,
      originStatus: request.source.scheme.hasOrigin ? status : nil, isStored: isStored,
      timings: timings)
  }

  /// Returns the source from a running revalidation, for a request that cannot use it stale.
  /// Returns `nil` if no running revalidation satisfies the request.
  private func revalidated(
    _ request: ImageRequest, with effects: Effects, since start: EntryValidity.LoadStart
  ) async throws(ImageError) -> LoadedSource? {
    guard let revalidation = parts.revalidator.runningRequest(for: request) else { return nil }
    let (loaded, _) = try await source(for: revalidation, with: effects)
    // A revalidation that began before a purge does not satisfy requests made after the purge.
    guard loaded.source.generation >= start.generation || !parts.validity.isPurged(loaded.source)
    else {
      return nil
    }
    return loaded
  }

  /// Returns whether a cached source or variant is served instead of a failed load (RFC 5861,
  /// section 4).
  ///
  /// A source that the origin reports as gone is invalidated with its variants.
  /// - Parameter isCurrent: whether the cached entry is still current; another flight or an upload
  ///   may have replaced it.
  func allowsStale(
    _ freshness: Freshness, version: UInt64, insteadOf error: ImageError,
    to request: ImageRequest, _ effects: Effects, isCurrent: () -> Bool
  ) async -> Bool {
    guard isCurrent() else { return false }
    if case .held = effects {
      return error.letsStaleBeServed && parts.staleness.servesOnError(freshness, to: request)
    }
    if case .sourceNotFound = error.cause {
      if await parts.store.invalidate(request.key.source, version: version, where: isCurrent) {
        parts.staleness.endBackoff(of: request.key.source)
      }
      return false
    }
    return parts.staleness.allowsStale(freshness, insteadOf: error, to: request)
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

extension CacheStatus.Forward {
  /// Why a request is forwarded to the origin.
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
    take(\.targetedControl)
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

struct LoadedSource: Sendable {
  let source: Source
  /// Why the loader was called, or `nil` if it was not.
  let forward: CacheStatus.Forward?
  /// The origin's status, or `nil` if no origin responded.
  let originStatus: Int?
  /// Why a stale source was used, or `nil` if the source is fresh.
  var stale: CacheStatus.StaleReason?
  /// Whether the disk tier has the source.
  let isStored: Bool
  let timings: Timings

  /// Returns the cache status of a response that needed this source. The status describes the
  /// origin request if there was one, otherwise the tier that had the data.
  ///
  /// - Parameters:
  ///   - replacesEntry: whether a stale variant was cached.
  ///   - isCollapsed: whether another request had started the source's flight.
  func status(
    from tier: CacheStatus.Tier, replacesEntry: Bool, isStored: Bool, isCollapsed: Bool,
    at now: UnixTime
  ) -> CacheStatus {
    guard let forward else {
      let use = stale.map { EntryUse.stale($0) } ?? .fresh
      return use.status(of: source.freshness, from: tier, at: now)
    }
    guard stale == nil else {
      return .staleIfError(collapsed: isCollapsed, originStatus: originStatus)
    }
    // An absent source of a cached variant counts as stale.
    return .miss(
      replacesEntry && forward == .uriMiss ? .stale : forward, stored: isStored,
      collapsed: isCollapsed, originStatus: originStatus)
  }
}

/// A source that a request has, or is loading before the manager knows how the request uses it.
enum HeldSource: Sendable {
  case loaded(LoadedSource)
  case loading(FlightParticipant, Task<Result<LoadedSource, ImageError>, Never>)

  /// Returns the source, and whether another request had started its load.
  ///
  /// - Parameter participant: the participant of a flight, which gives the load its priority. A
  ///   load that closes closes the flight.
  func value(
    for participant: FlightParticipant
  ) async throws(ImageError) -> (LoadedSource, joined: Bool) {
    switch self {
    case .loaded(let loaded): return (loaded, false)
    case .loading(let holder, let task):
      holder.enter(0, participant: participant, hasJoined: false)
      return (try await task.value.get(), holder.hasJoined)
    }
  }
}
