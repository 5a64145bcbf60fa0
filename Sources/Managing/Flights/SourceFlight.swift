// SourceFlight: the way of one source, from disk or from its origin.

import Model
import Platform

/// What a source flight ends with.
struct LoadedSource: Sendable {
  let source: Source
  /// Why the loader was asked; `nil`: it was not.
  let forward: CacheStatus.Forward?
  /// The origin's status; `nil` where there is no origin, or no answer.
  let originStatus: Int?
  /// Why it is there though it is stale; `nil`: it is fresh.
  var stale: CacheStatus.StaleReason?
  /// Whether the disk tier has it.
  let isStored: Bool
  let timings: Timings
}

extension ImageManager {
  /// The source of a request, from the flight that all share who ask for it in the same way.
  func source(
    for request: ImageRequest, _ share: FlightParticipant, isDetached: Bool = false
  ) async throws(ImageError) -> (LoadedSource, joined: Bool) {
    let (loaded, joined) = try await sourceFlights.value(
      for: SourceFlightKey(request), share: share, isDetached: isDetached
    ) { share async throws(ImageError) in try await self.findOrLoad(request, share) }
    // The flight was another's, with demands of its own: what it found kept may be too old for this one.
    if joined, loaded.forward == nil, use(of: loaded.source.freshness, by: request) == nil {
      guard request.options.cache != .only else { throw .notCached }
      var fresh = request
      fresh.options.cache = .refresh
      return try await source(for: fresh, share, isDetached: isDetached)
    }
    if joined, !loaded.isStored { _ = keep(loaded.source, for: request) }
    return (loaded, joined)
  }

  /// Whether a source is for the disk tier: a local file is read from where it is; a copy would only age.
  private func isKept(_ source: Source, _ request: ImageRequest) -> Bool {
    request.source.scheme != .local && source.freshness.isStorable
      && request.options.store.contains(.disk)
      && !isPurged(source)
  }

  /// Hands a source to the disk tier, where it is for it; tells whether it was taken.
  private func keep(_ source: Source, for request: ImageRequest) -> Bool {
    gate.hold(for: source.key) {
      isKept(source, request) && changed.allows(source) && disk.store(source)
    }
  }

  /// The source of a request: kept, still right as its origin says, or fetched.
  private func findOrLoad(
    _ request: ImageRequest, _ share: FlightParticipant
  ) async throws(ImageError) -> LoadedSource {
    let (options, key) = (request.options, request.key.source)
    // Before anything is looked at: where something is purged or put from here on, what this brings is not to be kept.
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
    // Reading a local file is no use of the network.
    guard options.cache != .only || isLocal else { throw .notCached }
    if let failure = rememberedFailure(of: request, ofLoading: true) { throw failure }
    if let kept { noteClock(kept.freshness) }
    let said = Lock<Freshness?>(nil)
    do throws(ImageError) {
      if let loaded = try await revalidated(request, share),
        // One that began before a purge is no answer to those who asked after it.
        loaded.source.generation >= generation || !isPurged(loaded.source)
      {
        return loaded
      }
      return try await load(
        request, share, kept, since: (generation, lastPut), timings,
        onHead: { freshness in
          said.withLock { $0 = freshness }
          // Not to be shared with who asks from here on, before anyone has seen a byte of it.
          if !freshness.isStorable { share.close() }
        })
    } catch {
      return try await standIn(
        for: error, kept, request, since: generation, said: said.withLock { $0 }, timings)
    }
  }

  /// The source from its origin.
  ///
  /// - Parameters:
  ///   - kept: what is there of it.
  ///   - last: the last purge, and the last image that was put here, before anything was looked at.
  ///   - onHead: is told of an answer when its head is there, on the loader's thread, where it must not wait.
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

  /// The freshness of an answer, from what asking for it took.
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

  /// Keeps a source that was loaded, and lets go of what was made of other bytes.
  ///
  /// In this order: from the first line on, no variant of other bytes is stored or served from disk; then nobody finds
  /// the old source, to make another; then what is there goes, disk before memory, which is filled from disk.
  private func replace(
    _ kept: Source?, with source: Source, for request: ImageRequest, since lastPut: Int
  ) async -> Bool {
    // Where nothing was kept and the request looked, there may be variants that were kept longer than their source. They
    // stay until their own time is over.
    let isRenewed = kept?.version == source.version
    let isChanged =
      request.source.scheme != .local && !isRenewed
      && (kept != nil || !request.options.cache.looks)
    let (isRight, isStored) = gate.hold(for: source.key) {
      // What others have loaded since the purge, or put, is right.
      guard !isPurged(source), !changed.isPut(source.key, since: lastPut) else {
        return (false, false)
      }
      if isRenewed {
        // A 304 is about what was kept when the origin was asked. Another flight may have brought other bytes since.
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
  /// This answer with the fields that a 304 sent anew (RFC 9111, section 4.3.4).
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
    // Age and date are the answer's own and no properties of the source: old ones would age it twice.
    updated.age = newer.age
    updated.date = newer.date
    // Those of the way that was gone this time.
    updated.redirects = newer.redirects
    return updated
  }
}
