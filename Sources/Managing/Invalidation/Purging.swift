// Purging: what operators take out of the cache, look for in it and put into it.

import Model

extension ImageManager: CacheOperations {
  /// See `CacheOperations`. It holds from its first line on, whatever becomes of the rest.
  public func purge(_ scope: PurgeScope) async throws(ImageError) -> PurgeReport {
    try await carryOut(purges.add(scope))
  }

  /// See `CacheOperations`. What is on its way to a tier may arrive there after it was emptied, as what is loaded a moment
  /// later does; a purge of everything lets nothing of before it through.
  public func clear(_ tiers: StoreTiers) async throws(ImageError) -> PurgeReport {
    guard tiers != .all else { return try await purge(.everything) }
    var report = PurgeReport()
    if tiers.contains(.memory) { report.memory = memory.removeAll { _ in true } }
    if tiers.contains(.disk) { report.disk = try await disk.clear() }
    return report
  }

  /// See `CacheOperations`.
  public func clean() async -> CleanReport { await disk.clean() }

  /// See `CacheOperations`.
  public func look(for request: ImageRequest) async -> CacheLookup {
    var look = CacheLookup()
    if let variant = memory.peek(request.key), isRight(variant) {
      look.memory = CacheEntryInfo(
        bytes: variant.body.count, freshness: variant.info.freshness,
        generation: variant.info.generation)
    }
    look.disk = await kept(request.key)
    look.source = await kept(request.key.source)
    return look
  }

  /// See `CacheOperations`. What began to load before, and ends later, does not take its place, however late in the purge
  /// of its URL it began.
  public func put(
    _ url: SourceURL, _ file: FileRegion, _ origin: OriginResponse
  ) async throws(ImageError) -> PurgeReport {
    guard url.scheme != .local else {
      throw .forbiddenSource(reason: "a local file is read from where it is", detail: "")
    }
    let beginning = await bytes(of: file, upTo: FormatSigns.limit)
    let format = beginning?.withUnsafeBytes { FormatSigns.format(of: $0) }
    guard let format, sourceFormats.contains(format) else {
      throw .unsupportedFormat(detail: "\(file.count) bytes of \(format?.rawValue ?? "no image")")
    }
    let now = now()
    let freshness = freshnessPolicy.freshness(
      of: origin, from: url, isAuthorized: false, requestedAt: now, receivedAt: now)
    guard freshness.isStorable else {
      throw .invalidParameter(
        name: "Cache-Control", value: origin.cacheControl ?? "", allowed: "what may be stored")
    }
    let report = try await purge(.url(url))
    let key = CacheKey(source: url)
    let isStored = gate.hold(for: key) {
      let source = Source(
        key: key, file: file, origin: origin, freshness: freshness, generation: purges.generation)
      guard disk.store(source) else { return false }
      changed.change(key, to: source.version, isPut: true)
      return true
    }
    guard isStored else { throw .overloaded(queue: "disk", retryAfter: 1) }
    // What was loaded since the purge, and what was made of it, goes as when a source has changed.
    sourceFlights.retire { $0.key == key }
    variantFlights.retire { $0.key.source == key }
    gate.pass()
    await disk.removeVariants(of: key)
    memory.removeVariants(of: key)
    return report
  }

  /// Does what a purge is that is in the list already.
  ///
  /// In this order: failures, which flights may end with, before the flights; those of sources before those of variants,
  /// since a variant's flight that begins in between is to find no older source's to join; and the tiers behind the gate.
  /// What a flight has looked at before it was in the table, it looked at after the purge was in the list.
  private func carryOut(_ purge: Purge) async throws(ImageError) -> PurgeReport {
    let isMeant: (CacheKey) -> Bool = { [purges] key in
      purges.covers(key, generation: purge.number - 1)
    }
    var report = PurgeReport()
    report.failed = failed.withLock { $0.removeAll(where: isMeant) }
    sourceFlights.retire { isMeant($0.key) }
    variantFlights.retire { isMeant($0.key) }
    gate.pass()
    report.memory = memory.removeAll(where: isMeant)
    report.disk = try await disk.purge(purge)
    return report
  }

  private func kept(_ key: CacheKey) async -> CacheEntryInfo? {
    guard let entry = await disk.look(for: key),
      !purges.covers(key, generation: entry.generation)
    else { return nil }
    return entry
  }

  /// Lists a failure, unless it is of something from before a purge; returns it as it is to be told.
  ///
  /// - Parameter generation: that of what failed.
  func remember(
    _ error: ImageError, of key: CacheKey, since generation: Int, said: Freshness?
  ) -> ImageError {
    // Asked in one step with the listing: a purge takes failures off the list once it is in its own.
    failed.withLock { failed in
      purges.covers(key, generation: generation)
        ? error : failed.add(key, error, said: said, now: now())
    }
  }
}
