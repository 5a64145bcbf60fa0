// VariantFlight: finds or renders one variant, from the cheapest place that has it.

import Model

/// The result of a variant flight.
struct MadeVariant: Sendable {
  let variant: Variant
  let status: CacheStatus
  let timings: Timings
}

/// How a variant was obtained.
private enum Making {
  /// The cached variant was renewed with the freshness of its source.
  case renewed
  /// The source was passed through.
  case passedThrough
  /// An imaging worker rendered the variant, or an equivalent image replaced the rendered one.
  case encoded
}

extension ImageManager {
  /// Returns a variant from memory, from disk, or rendered from its source.
  func findOrMake(
    _ request: ImageRequest, _ share: FlightParticipant, of held: SourceLease?
  ) async throws(ImageError) -> MadeVariant {
    let options = request.options
    // Another flight may have stored the variant between this request's memory look-up and its own
    // flight.
    let inMemory = memory.peek(request.key).flatMap { isRight($0) ? $0 : nil }
    if let inMemory, let use = use(of: inMemory.info.freshness, by: request) {
      let status = status(of: use, inMemory.info.freshness, from: .memory, to: request)
      return MadeVariant(variant: inMemory, status: status, timings: Timings())
    }
    var timings = Timings()
    var kept: Variant?
    if options.cache != .bypass {
      kept = await measured(&timings.disk) { await disk.variant(for: request.key) }
      if let found = kept, !isRight(found) { kept = nil }
    }
    if let kept, let use = use(of: kept.info.freshness, by: request) {
      if case .memory = kept.body { _ = store(kept, in: options.store.intersection(.memory)) }
      larger.withLock { $0.note(kept, request.transform) }
      let status = status(of: use, kept.info.freshness, from: .disk, to: request)
      return MadeVariant(variant: kept, status: status, timings: timings)
    }
    let quick = quicker(request)
    if let quick, kept == nil, inMemory == nil {
      return try await stepIn(for: request, quick, share, of: held)
    }
    if let failure = rememberedFailure(of: request, ofLoading: false) { throw failure }

    if kept == nil, inMemory == nil, held == nil,
      let derived = try await derive(request, share, &timings)
    {
      _ = store(derived, in: options.store)
      return MadeVariant(variant: derived, status: .hit(.variant), timings: timings)
    }

    let (loaded, joined): (LoadedSource, Bool)
    do throws(ImageError) {
      (loaded, joined) = try await source(for: request, share, of: held)
    } catch {
      return try await standIn(for: error, kept ?? inMemory, request, timings)
    }
    timings.add(loaded.timings)
    // Closes the flight before rendering: later requests must not share this source.
    if !loaded.source.freshness.isStorable { share.close() }
    // The cached variant is as stale as the source, so rendering again gains nothing.
    if loaded.stale != nil, let found = kept ?? inMemory, found.wasMade(of: loaded.source),
      found.info.freshness == loaded.source.freshness
    {
      let tier = kept == nil ? CacheStatus.Tier.memory : .disk
      let status = status(of: loaded, found, tier, request, stored: false, collapsed: joined)
      return MadeVariant(variant: found, status: status, timings: timings)
    }
    // Prefers the entry in memory: a large variant from disk is a file and cannot be renewed.
    let old = inMemory ?? kept
    if let quick, loaded.source.freshness.isStorable, old?.isRenewable(with: loaded.source) != true
    {
      let held = SourceLease(share: .ofFlight(), task: Task { .success(loaded) })
      return try await stepIn(for: request, quick, share, of: held)
    }
    let (variant, making) = try await make(request, of: loaded, old, share, &timings)
    if options.retriesFailed { forgetFailure(of: request) }
    // The disk tier already has a passed-through variant as its source.
    let tiers = making == .passedThrough ? options.store.intersection(.memory) : options.store
    let isStored = await replace(kept, with: variant, in: tiers)
    if isStored, !variant.info.isDamaged { larger.withLock { $0.note(variant, request.transform) } }
    let tier = making == .renewed ? inMemory == nil ? CacheStatus.Tier.disk : .memory : .source
    let status = status(of: loaded, old, tier, request, stored: isStored, collapsed: joined)
    return MadeVariant(variant: variant, status: status, timings: timings)
  }

  /// Returns the cache status of a response that needed its source. The status describes the origin
  /// request if there was one, otherwise the tier that had the data.
  private func status(
    of loaded: LoadedSource, _ kept: Variant?, _ tier: CacheStatus.Tier, _ request: ImageRequest,
    stored: Bool, collapsed: Bool
  ) -> CacheStatus {
    guard let forward = loaded.forward else {
      let use = loaded.stale.map { KeptUse.stale($0) } ?? .fresh
      return status(of: use, loaded.source.freshness, from: tier, to: request)
    }
    guard loaded.stale == nil else {
      return .staleIfError(collapsed: collapsed, originStatus: loaded.originStatus)
    }
    return .miss(
      kept != nil && forward == .uriMiss ? .stale : forward, stored: stored, collapsed: collapsed,
      originStatus: loaded.originStatus)
  }

  /// Revalidates the cached variant if it was rendered from this source and watermark version.
  /// Otherwise passes the source through, or renders a new variant.
  private func make(
    _ request: ImageRequest, of loaded: LoadedSource, _ kept: Variant?,
    _ share: FlightParticipant, _ timings: inout Timings
  ) async throws(ImageError) -> (Variant, Making) {
    let source = loaded.source
    let watermark = try await watermark(of: request, share, &timings)
    if let kept, kept.isRenewable(with: source), !kept.info.isDamaged,
      kept.info.watermarkVersion == watermark?.version ?? 0
    {
      var info = kept.info
      info.freshness = source.freshness.combined(with: watermark)
      return (Variant(key: kept.key, info: info, body: kept.body), .renewed)
    }
    if let variant = try await passedThrough(source, to: request, share) {
      return (variant, .passedThrough)
    }
    let image: ProcessedImage
    do throws(ImageError) {
      image = try await processor.process(
        ImageJob(
          file: source.file, transform: request.transform, density: request.source.density,
          overlay: request.transform.watermark.flatMap { ImageOverlay($0, watermark) },
          priority: share, source: SourceIdentity(key: source.key, version: source.version)))
    } catch {
      if case .watermark(let cause) = error, let watermark,
        let wanted = request.transform.watermark
      {
        throw remembering(cause, of: wanted, from: watermark)
      }
      if case .undecodable = error.cause { await disk.remove(source.key) }
      throw remembering(error, making: request, of: source)
    }
    timings.add(image.timings)
    if image.isDamaged {
      // Forces a new download, because the origin may soon have an intact image.
      await disk.remove(source.key)
      var info = VariantInfo(image, of: source, watermark)
      (info.isDamaged, info.freshness) = (true, info.freshness.ofDamaged(at: now()))
      return (Variant(key: request.key, info: info, body: .memory(image.bytes)), .encoded)
    }
    var other = await quickImage(insteadOf: image, of: source, watermark, for: request)
    if other == nil { other = await self.source(source, insteadOf: image, for: request) }
    if let other { return (other, .encoded) }
    let variant = Variant(
      key: request.key, info: VariantInfo(image, of: source, watermark), body: .memory(image.bytes))
    return (variant, .encoded)
  }

  /// Returns the source that the request already holds, or the one from the shared flight if that
  /// load was cancelled or purged.
  private func source(
    for request: ImageRequest, _ share: FlightParticipant, of held: SourceLease?
  ) async throws(ImageError) -> (LoadedSource, joined: Bool) {
    guard let held else { return try await source(for: request, share) }
    // The held load gets this flight's priority, and closing it closes this flight.
    held.share.enter(0, share, hasJoined: false)
    let generation = purges.generation
    do throws(ImageError) {
      let loaded = try await held.task.value.get()
      // A source from before a purge does not satisfy requests that joined this flight after the
      // purge.
      guard loaded.source.generation >= generation || !isPurged(loaded.source) else {
        return try await source(for: request, share)
      }
      return (loaded, held.share.hasJoined)
    } catch .cancelled where !Task.isCancelled {
      // The holder of the source has left, but other requests wait for this variant.
      return try await source(for: request, share)
    }
  }

  /// Returns the negatively cached failure of a request's source or variant.
  ///
  /// - Parameter ofLoading: `true` for failures to load the source, `false` for failures to render
  ///   it.
  func rememberedFailure(of request: ImageRequest, ofLoading: Bool) -> ImageError? {
    guard !request.options.retriesFailed else { return nil }
    return failed.withLock { failed in
      // A load failure of the source must not hide a render failure of the variant, or the reverse.
      [request.key.source, request.key].compactMap { failed.failure(of: $0, now: now()) }
        .first { $0.cause.isOfLoading == ofLoading }
    }
  }

  func forgetFailure(of request: ImageRequest) {
    failed.withLock { failed in
      _ = failed.remove(request.key.source)
      _ = failed.remove(request.key)
      if let watermark = request.transform.watermark { _ = failed.remove(watermark.key) }
    }
  }

  /// Adds a render failure to the negative cache and returns the error for the client.
  ///
  /// Only failures of the source itself (`ImageError.isOfSource`, as the imaging worker reports)
  /// are listed for the source. Failures of one variant are listed for that variant, and all others
  /// are not listed.
  private func remembering(
    _ error: ImageError, making request: ImageRequest, of source: Source
  ) -> ImageError {
    // `DeferredAVIFQueue` remembers this failure, and no client waited for it.
    guard !request.options.awaitsAVIF else { return error }
    switch error {
    case .ofVariant:
      return remember(
        error, of: request.key, since: source.generation, said: source.freshness)
    case _ where error.isOfSource:
      return remember(
        error, of: request.key.source, since: source.generation, said: source.freshness)
    default: return error
    }
  }

  /// Stores a new variant and returns whether a tier accepted it. A tier that may not store the
  /// variant drops an outdated one, which the next request would get otherwise.
  private func replace(
    _ kept: Variant?, with variant: Variant, in tiers: StoreTiers
  ) async -> Bool {
    let tiers = variant.info.freshness.isStorable ? tiers : []
    let isStored = store(variant, in: tiers)
    func isOther(_ kept: Variant) -> Bool {
      kept.info.sourceVersion != variant.info.sourceVersion
        || kept.info.watermarkVersion != variant.info.watermarkVersion
    }
    if !tiers.contains(.memory), let other = memory.peek(variant.key), isOther(other) {
      memory.remove(variant.key)
    }
    if !tiers.contains(.disk), let kept, isOther(kept) { await disk.remove(variant.key) }
    return isStored
  }

  /// Stores a variant in the given tiers and returns whether one accepted it. Damaged variants stay
  /// in memory.
  func store(_ variant: Variant, in tiers: StoreTiers) -> Bool {
    let tiers = variant.info.isDamaged ? tiers.intersection(.memory) : tiers
    return gate.hold(for: variant.key) {
      guard isRight(variant) else { return false }
      let isInMemory = tiers.contains(.memory) && memory.store(variant)
      let isOnDisk = tiers.contains(.disk) && disk.store(variant)
      // The source may have changed since the first check. A disk hit checks again when it is read.
      if isInMemory, !isRight(variant) { memory.remove(variant.key) }
      return isInMemory || isOnDisk
    }
  }

  /// Returns whether a source was purged after its load began.
  func isPurged(_ source: Source) -> Bool {
    purges.covers(source.key, generation: source.generation)
  }

  /// Returns whether a variant is neither purged nor rendered from a replaced source.
  func isRight(_ variant: Variant) -> Bool {
    changed.allows(variant) && !purges.covers(variant.key, generation: variant.info.generation)
  }
}

extension VariantInfo {
  /// Describes a rendered image, with the validator and freshness of its source. The watermark's
  /// freshness limits the latter.
  fileprivate init(_ image: ProcessedImage, of source: Source, _ watermark: Source?) {
    self.init(
      format: image.format, size: image.size, frames: image.frames, density: image.density,
      scaledDownFrom: image.scaledDownFrom, quality: image.quality, etag: "\"\(image.digest)\"",
      lastModified: source.origin.lastModified.flatMap { HTTPDate.parse($0) }.map(HTTPDate.text),
      freshness: source.freshness.combined(with: watermark), sourceVersion: source.version,
      watermarkVersion: watermark?.version ?? 0, generation: source.generation)
  }
}

extension Freshness {
  /// Returns the freshness, limited by the watermark's freshness if there is one.
  func combined(with watermark: Source?) -> Freshness {
    watermark.map { combined(with: $0.freshness) } ?? self
  }
}

extension ImageOverlay {
  fileprivate init?(_ watermark: Watermark, _ source: Source?) {
    guard let source else { return nil }
    self.init(file: source.file, density: watermark.source.density)
  }
}

extension CacheStatus {
  /// The status of a request that joined a flight. Only a forwarded request can be collapsed (RFC
  /// 9211, section 2.6).
  var collapsed: CacheStatus {
    switch self {
    case .hit, .staleHit: self
    case .miss(let forward, let stored, _, let originStatus):
      .miss(forward, stored: stored, collapsed: true, originStatus: originStatus)
    case .staleIfError(_, let originStatus):
      .staleIfError(collapsed: true, originStatus: originStatus)
    }
  }
}

extension Variant {
  /// Returns whether the variant was rendered from this version of the source.
  fileprivate func wasMade(of source: Source) -> Bool {
    source.version != 0 && info.sourceVersion == source.version
  }

  /// Returns whether the variant can take over the freshness of `source`. A variant in a file
  /// cannot.
  fileprivate func isRenewable(with source: Source) -> Bool {
    if case .memory = body { wasMade(of: source) } else { false }
  }
}

extension ImageError {
  /// Whether the failure belongs to loading the source, not to rendering.
  fileprivate var isOfLoading: Bool {
    switch self {
    case .sourceNotFound, .sourceTooLarge: true
    default: false
    }
  }
}
