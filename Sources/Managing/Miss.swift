// Miss: how a variant is found or made that a request's own look-up did not have, from top to
// bottom.

import Core

/// The current variants in the tiers that a request may not use without asking the origin.
private struct StaleVariants {
  let inMemory: Variant?
  let onDisk: Variant?

  /// The variant for an answer that stays stale.
  var any: Variant? { onDisk ?? inMemory }

  /// Returns the variant that can take over the freshness of its source and watermark: it is intact
  /// and was rendered from these versions. Prefers memory: a large variant on disk is a file and
  /// cannot be renewed.
  func renewable(_ source: Source, watermark: Source?) -> Variant? {
    guard let cached = inMemory ?? onDisk, case .memory = cached.body,
      cached.isRendered(from: source), !cached.info.isDamaged,
      cached.info.watermarkVersion == watermark?.version ?? 0
    else { return nil }
    return cached
  }
}

/// A variant that is new in the cache.
private enum NewVariant {
  /// A cached variant with the freshness of its source, from a tier.
  case renewed(Variant, CacheStatus.Tier)
  /// The source, passed through. The disk tier has it already.
  case passedThrough(Variant)
  /// What an imaging worker rendered, or an equivalent image in its place.
  case rendered(Variant)

  var variant: Variant {
    switch self {
    case .renewed(let variant, _), .passedThrough(let variant), .rendered(let variant): variant
    }
  }
}

extension ImageManager {
  /// Answers a request from the tiers, or makes its variant.
  ///
  /// - Parameters:
  ///   - held: the source that the request is loading already.
  ///   - effects: who the miss works for. An explanation takes the same way, without effects.
  /// - Throws: the failure that ends the miss.
  func answer(
    to request: ImageRequest, holding held: HeldSource? = nil, with effects: Effects
  ) async throws(ImageError) -> MissAnswer {
    var timings = Timings()

    // The tiers. Another flight may have stored the variant after the request's own look-up.
    let inMemory = cached(parts.cache.inMemory(request.key), in: .memory, for: request)
    if let hit = answer(with: inMemory, timings, noting: "memory", effects) { return hit }
    let onDisk = await lookOnDisk(request, &timings, effects)
    if let hit = answer(with: onDisk, timings, noting: "disk", effects) { return hit }
    if let trace = effects.trace, let status = explainFlight(of: request, in: trace) {
      return .foreseen(status)
    }
    if held == nil, let hit = await shared(request, timings, effects) { return hit }
    let stale = StaleVariants(inMemory: inMemory?.variant, onDisk: onDisk?.variant)

    // Answers that need no source: a faster format, a remembered failure, a larger variant.
    if stale.any == nil, let fallback = parts.imaging.fallback(for: request) {
      return try await answer(with: fallback, insteadOf: request, holding: held, effects)
    }
    if let failure = parts.failures.failure(of: request, at: .rendering) {
      effects.note("negative-cache", "a remembered failure: \(failure.code)")
      throw failure
    }
    effects.note("negative-cache", "no remembered failure to render")
    if stale.any == nil, held == nil, let derived = try await derive(request, timings, effects) {
      return derived
    }

    // The source, or a stale variant if the source cannot be loaded.
    let (loaded, joined): (LoadedSource, Bool)
    do throws(ImageError) {
      (loaded, joined) = try await source(of: request, holding: held, effects)
    } catch {
      return try await staleOnError(stale, error, request, timings, effects)
    }
    timings.add(loaded.timings)
    let source = loaded.source
    // Closes the flight before rendering: later requests must not share this source.
    if !source.freshness.isStorable { effects.participant?.close() }
    if let same = reuse(stale, of: loaded, joined: joined, timings, effects) { return same }
    let watermark = try await watermark(of: request, &timings, effects)
    let renewable = stale.renewable(source, watermark: watermark)
    if renewable == nil, source.freshness.isStorable,
      let fallback = parts.imaging.fallback(for: request)
    {
      return try await answer(
        with: fallback, insteadOf: request, holding: .loaded(loaded), effects)
    }

    // The variant: the cached one renewed, the source itself, or a rendered one.
    let made: NewVariant?
    if let renewable {
      made = renew(renewable, from: stale, source: source, watermark: watermark, effects)
    } else if let same = try await passThrough(
      source, to: request, hasStale: stale.any != nil, effects)
    {
      made = .passedThrough(same)
    } else {
      made = try await render(request, source: source, watermark: watermark, &timings, effects)
        .map { .rendered($0) }
    }
    return await store(
      made, of: request, loaded: loaded, joined: joined, stale: stale, timings, effects)
  }

  // MARK: The tiers

  /// Returns a variant with how a request may use it.
  func cached(
    _ variant: Variant?, in tier: CacheStatus.Tier, for request: ImageRequest
  ) -> CachedVariant? {
    variant.map {
      CachedVariant(
        variant: $0, tier: tier,
        use: parts.staleness.use(of: $0.info.freshness, by: request))
    }
  }

  /// Returns the result with a cached variant, or `nil` if the request may not use it.
  func result(with found: CachedVariant, _ timings: Timings) -> VariantResult? {
    guard let use = found.use else { return nil }
    if found.tier == .memory { parts.cache.admit(found.variant, for: .repeated) }
    let status = parts.staleness.status(
      of: use, with: found.variant.info.freshness, from: found.tier)
    return VariantResult(variant: found.variant, status: status, timings: timings)
  }

  private func answer(
    with found: CachedVariant?, _ timings: Timings, noting step: String, _ effects: Effects
  ) -> MissAnswer? {
    guard let found else {
      effects.note(step, "absent")
      return nil
    }
    guard let use = found.use else {
      effects.note(step, "the entry may not be used without the origin")
      return nil
    }
    guard effects.trace == nil else {
      effects.note(step, use.staleReason?.text ?? "a fresh entry")
      return .foreseen(
        parts.staleness.status(of: use, with: found.variant.info.freshness, from: found.tier))
    }
    return result(with: found, timings).map { .result($0) }
  }

  /// Looks on disk. Promotes a variant that the request may use into memory, and notes it as a
  /// derivation candidate.
  private func lookOnDisk(
    _ request: ImageRequest, _ timings: inout Timings, _ effects: Effects
  ) async -> CachedVariant? {
    // A refresh reads the entry too, because it may be renewed. A bypass ignores it.
    guard request.options.cache != .bypass else { return nil }
    let isUse = effects.trace == nil
    let variant = await timings.measureDisk {
      await parts.cache.onDisk(request.key, isUse: isUse)
    }
    let found = cached(variant, in: .disk, for: request)
    guard isUse, let found, found.use != nil else { return found }
    if case .memory = found.variant.body { promote(found.variant, for: request) }
    parts.candidates.withLock { $0.note(found.variant, of: request.transform) }
    return found
  }

  /// Stores a variant from disk in memory if the request's storage options allow it.
  func promote(_ variant: Variant, for request: ImageRequest) {
    parts.requests.note(request, of: variant)
    parts.cache.store(variant, in: request.options.store.intersection(.memory))
  }

  /// Answers with a fresh variant that another machine has rendered, and stores it in this
  /// machine's tiers. The disk tier does not defer it: another machine has admitted it.
  private func shared(
    _ request: ImageRequest, _ timings: Timings, _ effects: Effects
  ) async -> MissAnswer? {
    guard parts.fleet != nil, request.options.cache.readsCache, !request.options.isRevalidation,
      VariantCache.mayBeShared(request.key),
      request.transform.watermark?.source.scheme != .local
    else { return nil }
    guard
      let found = cached(await parts.cache.shared(request.key), in: .shared, for: request),
      found.use == .fresh, !(await parts.store.outdates(found.variant, for: request))
    else {
      effects.note("shared", "absent, or this machine has another source")
      return nil
    }
    guard effects.trace == nil else {
      effects.note("shared", "a fresh entry of another machine")
      return .foreseen(.hit(.shared))
    }
    parts.requests.note(request, of: found.variant)
    parts.cache.store(
      found.variant, in: request.options.store, for: request.options.demand(isRepeated: true),
      isFromFleet: true)
    parts.candidates.withLock { $0.note(found.variant, of: request.transform) }
    return result(with: found, timings).map { .result($0) }
  }

  // MARK: Answers without a source

  /// Answers in a faster format, and schedules the AVIF.
  private func answer(
    with fallback: ImageRequest, insteadOf request: ImageRequest, holding held: HeldSource?,
    _ effects: Effects
  ) async throws(ImageError) -> MissAnswer {
    guard let participant = effects.participant else {
      effects.note(
        "fallback-format", "a faster format first; the AVIF is encoded in the background")
      return try await answer(to: fallback, holding: held, with: effects)
    }
    let delivery = try await delivery(of: fallback, holding: held, for: participant)
    return .later(
      await deferredAVIF.response(to: request, with: delivery) {
        request async throws(ImageError) in _ = try await self.variant(for: request)
      })
  }

  /// Answers with a variant derived from a larger one, if the source is not cached.
  ///
  /// A derived variant looks the same as one from the source but has other bytes. So it only
  /// replaces a download.
  private func derive(
    _ request: ImageRequest, _ timings: Timings, _ effects: Effects
  ) async throws(ImageError) -> MissAnswer? {
    guard request.options.cache.readsCache,
      !request.options.isRevalidation, request.source.scheme.hasOrigin
    else { return nil }
    let candidates = parts.candidates.withLock { $0.candidates(for: request) }
    guard !candidates.isEmpty, await parts.store.entry(of: request.key.source) == nil else {
      return nil
    }
    for (candidate, rest) in candidates {
      guard let larger = await parts.cache.variant(for: candidate.key, isUse: effects.trace == nil)
      else {
        if effects.trace == nil { parts.candidates.withLock { $0.remove(candidate.key) } }
        continue
      }
      guard !larger.info.isDamaged,
        parts.staleness.use(of: larger.info.freshness, by: request) == .fresh
      else { continue }
      guard let participant = effects.participant else {
        effects.note(
          "derivation", "derives it from the variant \(candidate.transform.canonicalText)")
        return .foreseen(.hit(.variant))
      }
      guard let file = larger.file(parts.storage) else { continue }
      let image: ProcessedImage
      do throws(ImageError) {
        image = try await parts.processor.process(
          ImageJob(
            file: file, transform: rest, density: request.source.density,
            priority: participant, client: request.key.variation))
      } catch .cancelled {
        throw .cancelled
      } catch {
        // Falls back to the source.
        return nil
      }
      var timings = timings
      timings.add(image.report.timings)
      parts.substitutions.derived.add()
      let variant = Variant(
        key: request.key, info: VariantInfo(image, derivedFrom: larger.info), body: image.body)
      parts.cache.store(variant, in: request.options.store, for: request.options.demand())
      return .result(
        VariantResult(variant: variant, status: .hit(.variant), timings: timings))
    }
    effects.note("derivation", "no larger variant to derive from")
    return nil
  }

  // MARK: The source

  /// Returns the source that the request already holds, or the one from the shared flight if that
  /// load was cancelled or purged.
  private func source(
    of request: ImageRequest, holding held: HeldSource?, _ effects: Effects
  ) async throws(ImageError) -> (LoadedSource, joined: Bool) {
    guard let held, let participant = effects.participant else {
      return try await sources.source(for: request, with: effects)
    }
    let generation = parts.validity.generation
    do throws(ImageError) {
      let (loaded, joined) = try await held.value(for: participant)
      // A source from before a purge does not satisfy requests that joined this flight after the
      // purge.
      if loaded.source.generation >= generation || !parts.validity.isPurged(loaded.source) {
        return (loaded, joined)
      }
    } catch .cancelled where !Task.isCancelled {
      // The holder of the source has left, but other requests wait for this variant.
    }
    return try await sources.source(for: request, with: effects)
  }

  /// Answers with a stale variant in place of the failure to load its source.
  private func staleOnError(
    _ stale: StaleVariants, _ error: ImageError, _ request: ImageRequest, _ timings: Timings,
    _ effects: Effects
  ) async throws(ImageError) -> MissAnswer {
    guard let cached = stale.any,
      await sources.allowsStale(
        cached.info.freshness, version: cached.info.sourceVersion, insteadOf: error, to: request,
        effects, isCurrent: { parts.validity.isCurrent(cached) })
    else {
      effects.note("source", "no source: \(error.code)")
      throw error
    }
    effects.note("source", "the stale variant, in place of \(error.code)")
    return .result(
      VariantResult(
        variant: cached,
        status: .staleIfError(collapsed: false, originStatus: error.originStatus),
        timings: timings))
  }

  /// Answers with the cached variant if the source is just as stale. Rendering again would gain
  /// nothing.
  private func reuse(
    _ stale: StaleVariants, of loaded: LoadedSource, joined: Bool, _ timings: Timings,
    _ effects: Effects
  ) -> MissAnswer? {
    guard loaded.stale != nil, let found = stale.any, found.isRendered(from: loaded.source),
      found.info.freshness == loaded.source.freshness
    else { return nil }
    effects.note("stale-reuse", "the source is just as stale")
    let status = loaded.status(
      from: stale.onDisk == nil ? .memory : .disk, replacesEntry: true, isStored: false,
      isCollapsed: joined, at: parts.now())
    return .result(VariantResult(variant: found, status: status, timings: timings))
  }

  /// Returns the source of the request's watermark, or `nil` if the request has none. A watermark
  /// is cached, coalesced, revalidated and negatively cached under its own URL.
  ///
  /// The request's load options apply, except the storage tiers: many images share one watermark,
  /// so all tiers may store it.
  ///
  /// - Throws: the failure, marked as a failure of the watermark.
  private func watermark(
    of request: ImageRequest, _ timings: inout Timings, _ effects: Effects
  ) async throws(ImageError) -> Source? {
    guard let watermark = request.transform.watermark else { return nil }
    var options = request.options
    options.store = .all
    let own = ImageRequest(
      source: watermark.source, transform: Transform(), options: options,
      keyURL: watermark.keyURL)
    do throws(ImageError) {
      if let failure = parts.failures.failure(of: own, at: .rendering) { throw failure }
      let (loaded, _) = try await sources.source(
        for: own, with: effects, noting: "watermark")
      timings.add(loaded.timings)
      return loaded.source
    } catch {
      effects.note("watermark", "no watermark: \(error.code)")
      throw error.ofWatermark
    }
  }

  // MARK: The variant

  /// Gives a cached variant the freshness of its source and watermark.
  private func renew(
    _ cached: Variant, from stale: StaleVariants, source: Source, watermark: Source?,
    _ effects: Effects
  ) -> NewVariant {
    effects.note("renewal", "the variant gets the freshness of its source")
    var info = cached.info
    info.freshness = source.freshness.combined(with: watermark)
    return .renewed(
      Variant(key: cached.key, info: info, body: cached.body),
      stale.inMemory == nil ? .disk : .memory)
  }

  /// Returns the source as the variant if it needs no processing: the request asks for no change,
  /// and the head shows that none is needed.
  private func passThrough(
    _ source: Source, to request: ImageRequest, hasStale: Bool, _ effects: Effects
  ) async throws(ImageError) -> Variant? {
    guard let participant = effects.participant else {
      if hasStale, source.version == 0 {
        effects.note(
          "renewal", "the variant is renewed if neither source nor watermark has changed")
      }
      if parts.imaging.passedFormat(for: request.transform) != nil {
        effects.note(
          "pass-through", "the source is the response, if its head shows that nothing has to change"
        )
      }
      return nil
    }
    return try await passedThrough(source, for: request, participant: participant)
  }

  /// Renders the variant, and remembers a failure to render it. Returns an equivalent image if that
  /// is smaller; `nil` for an explanation.
  private func render(
    _ request: ImageRequest, source: Source, watermark: Source?, _ timings: inout Timings,
    _ effects: Effects
  ) async throws(ImageError) -> Variant? {
    effects.note("render", "a worker renders the variant")
    guard let participant = effects.participant else { return nil }
    let overlay = watermark.flatMap { watermark in
      request.transform.watermark.map {
        ImageOverlay(file: watermark.file, density: $0.source.density)
      }
    }
    let image: ProcessedImage
    do throws(ImageError) {
      image = try await parts.processor.process(
        ImageJob(
          file: source.file, transform: request.transform, density: request.source.density,
          overlay: overlay, priority: participant,
          source: SourceIdentity(key: source.key, version: source.version),
          client: request.key.variation))
    } catch {
      throw await remember(error, rendering: request, source: source, watermark: watermark)
    }
    timings.add(image.report.timings)
    var info = VariantInfo(image, of: source, watermark: watermark)
    if image.report.isDamaged {
      // Forces a new download, because the origin may soon have an intact image.
      await parts.disk.remove(source.key)
      info.isDamaged = true
      info.freshness = parts.freshness.limited(info.freshness)
    } else if let fallback = await smallerFallback(
      than: image, for: request, source: source, watermark: watermark)
    {
      return fallback
    } else if let original = await smallerOriginal(than: image, for: request, source: source) {
      return original
    }
    return Variant(key: request.key, info: info, body: image.body)
  }

  /// Adds a failure to the negative cache, for the watermark if that is to blame. Returns the error
  /// for the client.
  private func remember(
    _ error: ImageError, rendering request: ImageRequest, source: Source, watermark: Source?
  ) async -> ImageError {
    if case .watermark(let cause) = error, let watermark,
      let key = request.transform.watermark?.key
    {
      return parts.failures.add(
        cause, of: key, since: watermark.generation, freshness: watermark.freshness
      ).ofWatermark
    }
    if case .undecodable = error.cause { await parts.disk.remove(source.key) }
    return parts.failures.add(error, rendering: request, of: source)
  }

  /// Stores the new variant in the tiers that the request allows, and answers with it.
  private func store(
    _ made: NewVariant?, of request: ImageRequest, loaded: LoadedSource, joined: Bool,
    stale: StaleVariants, _ timings: Timings, _ effects: Effects
  ) async -> MissAnswer {
    let options = request.options
    let hasEntry = stale.any != nil
    var tiers = options.store
    var tier = CacheStatus.Tier.source
    switch made {
    case .passedThrough: tiers.formIntersection(.memory)
    case .renewed(_, let place): tier = place
    case .rendered, nil: break
    }
    func status(isStored: Bool) -> CacheStatus {
      loaded.status(
        from: tier, replacesEntry: hasEntry, isStored: isStored,
        isCollapsed: joined, at: parts.now())
    }
    guard effects.trace == nil, let variant = made?.variant else {
      effects.note(
        "store", tiers.isEmpty ? "stores nothing, as the request demands" : "stores the variant")
      return .foreseen(status(isStored: false))
    }
    if options.retriesFailed { parts.failures.removeFailures(of: request) }
    parts.requests.note(request, of: variant)
    let isStored = await parts.cache.replace(
      stale.onDisk, with: variant, in: tiers, for: options.demand(isRepeated: hasEntry))
    if isStored, !variant.info.isDamaged {
      parts.candidates.withLock { $0.note(variant, of: request.transform) }
    }
    return .result(
      VariantResult(variant: variant, status: status(isStored: isStored), timings: timings))
  }
}
