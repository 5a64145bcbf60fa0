// SourceFlight: loads one source from disk or from its origin.

import Model
import Platform

/// The result of a source flight.
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
}

extension ImageManager {
  /// Returns the source of a request, from the flight that all requests with the same source key
  /// share.
  func source(
    for request: ImageRequest, _ share: FlightParticipant, isDetached: Bool = false
  ) async throws(ImageError) -> (LoadedSource, joined: Bool) {
    let (loaded, joined) = try await sourceFlights.value(
      for: SourceFlightKey(request), share: share, isDetached: isDetached
    ) { share async throws(ImageError) in try await self.findOrLoad(request, share) }
    // A joined flight may have used a cached source that is too old for this request.
    if joined, loaded.forward == nil, use(of: loaded.source.freshness, by: request) == nil {
      guard request.options.cache != .only else { throw .notCached }
      var fresh = request
      fresh.options.cache = .refresh
      return try await source(for: fresh, share, isDetached: isDetached)
    }
    if joined, !loaded.isStored { _ = keep(loaded.source, for: request) }
    return (loaded, joined)
  }

  /// Returns whether the disk tier may store a source. Local files are read in place, because a
  /// copy would become outdated.
  private func isKept(_ source: Source, _ request: ImageRequest) -> Bool {
    request.source.scheme != .local && source.freshness.isStorable
      && request.options.store.contains(.disk)
      && !isPurged(source)
  }

  /// Stores a source on disk if allowed, and returns whether the disk tier accepted it.
  private func keep(_ source: Source, for request: ImageRequest) -> Bool {
    gate.hold(for: source.key) {
      isKept(source, request) && changed.allows(source) && disk.store(source)
    }
  }

  /// Returns the source of a request: cached, revalidated or downloaded.
  private func findOrLoad(
    _ request: ImageRequest, _ share: FlightParticipant
  ) async throws(ImageError) -> LoadedSource {
    let (options, key) = (request.options, request.key.source)
    // Read before any look-up: after a later purge or upload, the result of this load must not be
    // stored.
    let (generation, lastPut) = gate.hold(for: key) { (purges.generation, changed.lastPut) }
    var timings = Timings()
    let isLocal = request.source.scheme == .local
    var kept = !isLocal ? await measured(&timings.disk) { await disk.source(for: key) } : nil
    if let found = kept, purges.covers(key, generation: found.generation) { kept = nil }
    if let kept, let use = use(of: kept.freshness, by: request) {
      return LoadedSource(
        source: kept, forward: nil, originStatus: nil, stale: use.staleReason, isStored: true,
        timings: timings)
    }
    // Reading a local file does not use the network.
    guard options.cache != .only || isLocal else { throw .notCached }
    if let failure = rememberedFailure(of: request, ofLoading: true) { throw failure }
    if let kept { noteClock(kept.freshness) }
    let said = Lock<Freshness?>(nil)
    do throws(ImageError) {
      if let loaded = try await revalidated(request, share),
        // A revalidation that began before a purge does not satisfy requests made after the purge.
        loaded.source.generation >= generation || !isPurged(loaded.source)
      {
        return loaded
      }
      return try await load(
        request, share, kept, since: (generation, lastPut), timings,
        onHead: { freshness in
          said.withLock { $0 = freshness }
          // Closes the flight before the first byte of a body that must not be shared.
          if !freshness.isStorable { share.close() }
        })
    } catch {
      return try await standIn(
        for: error, kept, request, since: generation, said: said.withLock { $0 }, timings)
    }
  }

  /// Loads the source from its origin.
  ///
  /// - Parameters:
  ///   - kept: the cached source, if any.
  ///   - last: the last purge and the last upload before the first look-up.
  ///   - onHead: called with the freshness of a response when its head arrives, on the loader's
  ///     thread; must not block.
  private func load(
    _ request: ImageRequest, _ share: FlightParticipant, _ kept: Source?,
    since last: (purge: Int, put: Int), _ timings: Timings,
    onHead: @escaping @Sendable (Freshness) -> Void
  ) async throws(ImageError) -> LoadedSource {
    let (url, options, key) = (request.source, request.options, request.key.source)
    var timings = timings
    let forward: CacheStatus.Forward =
      options.cache.looks && options.age == AgeDemands()
      ? (kept == nil ? .uriMiss : .stale) : .request
    let validators = options.cache == .bypass ? nil : kept.flatMap { Validators($0.origin) }
    let result = try await loader.load(
      LoadRequest(
        url: url, validators: validators, priority: share, forwarded: request.forwarded,
        trail: options.trail,
        onHead: { onHead(self.freshness(of: $0, for: request, Timings())) },
        onBody: { share.begin(ComingBody(body: $0, forward: forward)) }))
    let source: Source
    let status: Int
    switch result {
    case .fetched(let download):
      timings.add(download.timings)
      status = download.origin.status
      source = Source(
        key: key, file: download.file, origin: download.origin,
        freshness: freshness(of: download.origin, for: request, download.timings),
        version: download.version, generation: last.purge)
    case .notModified(let origin, let spent):
      guard let kept else { throw .internal(detail: "a 304 without anything kept") }
      timings.add(spent)
      status = 304
      let updated = kept.origin.updated(by: origin)
      source = Source(
        key: key, file: kept.file, origin: updated,
        freshness: freshness(of: updated, for: request, spent),
        version: kept.version, generation: kept.generation)
    }
    failing.withLock { $0.remove(key) }
    let isStored = await replace(kept, with: source, for: request, since: last.put)
    return LoadedSource(
      source: source, forward: forward, originStatus: url.scheme == .local ? nil : status,
      isStored: isStored, timings: timings)
  }

  /// Returns the freshness of an origin response, with request and response times derived from
  /// `timings`.
  func freshness(
    of origin: OriginResponse, for request: ImageRequest, _ timings: Timings
  ) -> Freshness {
    func before(_ moment: UnixTime, _ duration: Duration?) -> UnixTime {
      UnixTime(seconds: moment.seconds - Int((duration ?? .zero).inSeconds.rounded()))
    }
    let receivedAt = before(now(), timings.download)
    return freshnessPolicy.freshness(
      of: origin, from: request.source, isAuthorized: request.isAuthorized,
      requestedAt: before(receivedAt, timings.ttfb), receivedAt: receivedAt)
  }

  /// Stores a loaded source, and invalidates the source and variants it replaces. Returns whether
  /// the source is stored.
  ///
  /// The order matters:
  /// 1. Record the new version, so no variant of the old bytes is stored or served from disk.
  /// 2. Replace the old source, so no new variant is rendered from it.
  /// 3. Remove the old variants from disk, then from memory, because disk hits fill memory.
  private func replace(
    _ kept: Source?, with source: Source, for request: ImageRequest, since lastPut: Int
  ) async -> Bool {
    // A regular miss may find variants that outlived their source. They stay until they expire.
    let isRenewed = kept?.version == source.version
    let isChanged =
      request.source.scheme != .local && !isRenewed
      && (kept != nil || !request.options.cache.looks)
    let (isRight, isStored) = gate.hold(for: source.key) {
      // A source that was downloaded or uploaded after the purge is current.
      guard !isPurged(source), !changed.isPut(source.key, since: lastPut) else {
        return (false, false)
      }
      if isRenewed {
        // A 304 refers to the cached source at request time. Another flight may have stored other
        // bytes since.
        guard changed.allows(source) else { return (false, false) }
      } else if isChanged {
        changed.change(source.key, to: source.version)
      } else {
        changed.load(source.key, version: source.version)
      }
      return (true, isKept(source, request) && disk.store(source))
    }
    if isChanged, isRight {
      if !isStored { await disk.remove(source.key) }
      await disk.removeVariants(of: source.key)
      memory.removeVariants(of: source.key)
    }
    return isStored
  }

  func measured<Value>(
    _ duration: inout Duration?, _ work: () async -> Value
  ) async -> Value {
    let start = ContinuousClock.now
    let value = await work()
    duration = (duration ?? .zero) + (.now - start)
    return value
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
    // The redirects of the latest request.
    updated.redirects = newer.redirects
    return updated
  }
}
