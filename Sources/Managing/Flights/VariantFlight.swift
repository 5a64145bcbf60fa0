// VariantFlight: the way of one variant, from the first place that has it.

import Model

/// What a variant flight ends with.
struct MadeVariant: Sendable {
  let variant: Variant
  let status: CacheStatus
  let timings: Timings
}

/// How a variant came about.
private enum Making {
  /// It was kept, and still is what its source makes.
  case renewed
  /// It is the source.
  case passedThrough
  /// A worker made it, or something that it goes out in place of.
  case encoded
}

extension ImageManager {
  /// From memory, from disk, or made of its source.
  func findOrMake(
    _ request: ImageRequest, _ share: FlightParticipant, of held: SourceLease?
  ) async throws(ImageError) -> MadeVariant {
    let options = request.options
    // Another flight may have ended between this request's look into memory and its own flight.
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
    // However long making it takes, it is for those who have asked by now.
    if !loaded.source.freshness.isStorable { share.close() }
    // It is as stale as what is kept, so that will do as it is.
    if loaded.stale != nil, let found = kept ?? inMemory, found.wasMade(of: loaded.source),
      found.info.freshness == loaded.source.freshness
    {
      let tier = kept == nil ? CacheStatus.Tier.memory : .disk
      let status = status(of: loaded, found, tier, request, stored: false, collapsed: joined)
      return MadeVariant(variant: found, status: status, timings: timings)
    }
    // Memory has large ones whole that the disk tier would have sent from the file.
    let old = inMemory ?? kept
    if let quick, loaded.source.freshness.isStorable, old?.isRenewable(with: loaded.source) != true
    {
      let held = SourceLease(share: .ofFlight(), task: Task { .success(loaded) })
      return try await stepIn(for: request, quick, share, of: held)
    }
    let (variant, making) = try await make(request, of: loaded, old, share, &timings)
    if options.retriesFailed { forgetFailure(of: request) }
    // What is passed through is on disk as its source.
    let tiers = making == .passedThrough ? options.store.intersection(.memory) : options.store
    let isStored = await replace(kept, with: variant, in: tiers)
    if isStored, !variant.info.isDamaged { larger.withLock { $0.note(variant, request.transform) } }
    let tier = making == .renewed ? inMemory == nil ? CacheStatus.Tier.disk : .memory : .source
    let status = status(of: loaded, old, tier, request, stored: isStored, collapsed: joined)
    return MadeVariant(variant: variant, status: status, timings: timings)
  }

  /// What is said of an answer that needed its source: where the origin was asked, what came of it; else which tier had
  /// what was needed.
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

  /// The kept variant with its source's freshness, where it was made of these very bytes and this watermark; else the
  /// source itself, where it needs no work; else one made now.
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
      // The origin may soon have it whole: it is loaded anew then.
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

  /// The source that the request holds already, if it does and that comes to anything, else from the common flight.
  private func source(
    for request: ImageRequest, _ share: FlightParticipant, of held: SourceLease?
  ) async throws(ImageError) -> (LoadedSource, joined: Bool) {
    guard let held else { return try await source(for: request, share) }
    // Its priority is the held one's too, and what closes that closes this flight.
    held.share.enter(0, share, hasJoined: false)
    let generation = purges.generation
    do throws(ImageError) {
      let loaded = try await held.task.value.get()
      // What was held when a purge came is no answer to those who asked after it and joined this flight.
      guard loaded.source.generation >= generation || !isPurged(loaded.source) else {
        return try await source(for: request, share)
      }
      return (loaded, held.share.hasJoined)
    } catch .cancelled where !Task.isCancelled {
      // Who held it has gone; others wait for this variant.
      return try await source(for: request, share)
    }
  }

  /// The failure a request gets at once, because its source failed before, or what is wanted of it did.
  ///
  /// - Parameter ofLoading: a failure to load the source, which matters once it is to be loaded; otherwise one to make
  ///   something of it.
  func rememberedFailure(of request: ImageRequest, ofLoading: Bool) -> ImageError? {
    guard !request.options.retriesFailed else { return nil }
    return failed.withLock { failed in
      // A source may have gone since something could not be made of what is kept of it.
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

  /// Remembers that no image could be made, and returns the failure as it is to be told.
  ///
  /// Only what the source itself is to blame for is listed as the source's (`ImageError.isOfSource`), which the worker
  /// tells. What fails with one variant is listed as that variant's, and everything else is not listed.
  private func remembering(
    _ error: ImageError, making request: ImageRequest, of source: Source
  ) -> ImageError {
    // The backlog remembers it, and no client waited.
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

  /// Stores what a source came to now; tells whether a tier keeps it. One that may not does not keep what other bytes came
  /// to either, or the next request would get that.
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

  /// In the tiers that may keep it; tells whether one does.
  func store(_ variant: Variant, in tiers: StoreTiers) -> Bool {
    let tiers = variant.info.isDamaged ? tiers.intersection(.memory) : tiers
    return gate.hold(for: variant.key) {
      guard isRight(variant) else { return false }
      let isInMemory = tiers.contains(.memory) && memory.store(variant)
      let isOnDisk = tiers.contains(.disk) && disk.store(variant)
      // Its source may have changed since the question; on disk it is asked again by whoever reads it.
      if isInMemory, !isRight(variant) { memory.remove(variant.key) }
      return isInMemory || isOnDisk
    }
  }

  /// Whether a source was purged since its loading began.
  func isPurged(_ source: Source) -> Bool {
    purges.covers(source.key, generation: source.generation)
  }

  /// Whether a variant was neither purged nor made of bytes that were replaced since.
  func isRight(_ variant: Variant) -> Bool {
    changed.allows(variant) && !purges.covers(variant.key, generation: variant.info.generation)
  }
}

extension VariantInfo {
  /// What a worker made, with what its source passes on: validator and freshness, bounded by its watermark's.
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
  /// The same, bounded by a watermark's, where there is one.
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
  /// The same, for a request that joined a flight: only a forwarded request can be collapsed (RFC 9211, section 2.6).
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
  /// Whether it was made of these very bytes.
  fileprivate func wasMade(of source: Source) -> Bool {
    source.version != 0 && info.sourceVersion == source.version
  }

  /// Whether it can be kept on with the freshness of a source that it was made of.
  fileprivate func isRenewable(with source: Source) -> Bool {
    if case .memory = body { wasMade(of: source) } else { false }
  }
}

extension ImageError {
  /// Whether the source could not be had; otherwise nothing could be made of it.
  fileprivate var isOfLoading: Bool {
    switch self {
    case .sourceNotFound, .sourceTooLarge: true
    default: false
    }
  }
}
