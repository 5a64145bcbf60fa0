// SourceFlight: the way of one source, from disk or from its origin.

import Model

/// What a source flight ends with.
struct LoadedSource: Sendable {
  let source: Source
  /// Why the loader was asked; `nil`: it was not.
  let forward: CacheStatus.Forward?
  /// The origin's status; `nil` where there is no origin.
  let originStatus: Int?
  let timings: Timings
}

extension ImageManager {
  /// The source of a request: kept, still right as its origin says, or fetched.
  func findOrLoad(
    _ request: ImageRequest, _ share: FlightShare
  ) async throws(ImageError) -> LoadedSource {
    let (url, options) = (request.source, request.options)
    let key = request.key.source
    var timings = Timings()
    // A local file is read from where it is; a copy in the disk tier would only age.
    let isKept = url.scheme != .local
    let kept = isKept ? await measured(&timings.disk) { await disk.source(for: key) } : nil
    if let kept, mayHave(kept.freshness, options) {
      return LoadedSource(source: kept, forward: nil, originStatus: nil, timings: timings)
    }
    // Reading a local file is no use of the network.
    guard options.cache != .only || !isKept else { throw .notCached }

    let forward: CacheStatus.Forward =
      options.cache.looks && options.age == AgeDemands()
      ? (kept == nil ? .uriMiss : .stale) : .request
    let validators = options.cache == .bypass ? nil : kept.flatMap { Validators($0.origin) }
    let result: LoadResult
    do throws(ImageError) {
      result = try await loader.load(
        LoadRequest(
          url: url, validators: validators, priority: share, forwarded: request.forwarded
        ) { body in
          share.begin(ComingBody(body: body, forward: forward))
        })
    } catch {
      throw failed.withLock { $0.add(key, error, now: now()) }
    }
    let source: Source
    let status: Int
    switch result {
    case .fetched(let download):
      timings.add(download.timings)
      status = download.origin.status
      source = Source(
        key: key, file: download.file, origin: download.origin,
        freshness: freshnessPolicy.freshness(of: download.origin, receivedAt: now()),
        version: download.version)
      // What was made of other bytes is not this source's any more. Without these, a variant that was kept longer than
      // its source stays until its own time is over.
      if kept != nil || !options.cache.looks {
        memory.removeVariants(of: key)
        await disk.removeVariants(of: key)
      }
    case .notModified(let origin, let spent):
      guard let kept else { throw .internal(detail: "a 304 without anything kept") }
      timings.add(spent)
      status = 304
      let updated = kept.origin.updated(by: origin)
      source = Source(
        key: key, file: kept.file, origin: updated,
        freshness: freshnessPolicy.freshness(of: updated, receivedAt: now()),
        version: kept.version)
    }
    if isKept, source.freshness.isStorable, options.store.contains(.disk) {
      _ = disk.store(source)
    }
    return LoadedSource(
      source: source, forward: forward, originStatus: isKept ? status : nil, timings: timings)
  }

  /// Whether something kept may be the answer to a request.
  func mayHave(_ freshness: Freshness, _ options: LoadOptions) -> Bool {
    options.cache.looks && freshness.satisfies(options.age, at: now())
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
    take(\.date)
    take(\.lastModified)
    take(\.etag)
    // The age is the answer's own and not a property of the source: an old one would age it twice.
    updated.age = newer.age
    return updated
  }
}
