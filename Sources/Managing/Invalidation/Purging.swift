// Purging: implements the operator's purge, clear, look-up and upload.

import Model

extension ImageManager: CacheOperations {
  /// See `CacheOperations`. The purge takes effect when it is published, even if a later step
  /// fails.
  public func purge(_ scope: PurgeScope) async throws(ImageError) -> PurgeReport {
    try await carryOut(purges.add(scope))
  }

  /// See `CacheOperations`.
  ///
  /// Clearing one tier does not stop entries that are being written to it. Clearing all tiers is a
  /// purge of everything, which stops them.
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

  /// See `CacheOperations`. A download that began before the upload does not replace the uploaded
  /// image.
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
    // Invalidates all data that was downloaded or rendered since the purge.
    sourceFlights.retire { $0.key == key }
    variantFlights.retire { $0.key.source == key }
    gate.pass()
    await disk.removeVariants(of: key)
    memory.removeVariants(of: key)
    return report
  }

  /// Applies a purge that is already published.
  ///
  /// The order matters:
  /// 1. Failures before flights: a flight may end with a listed failure.
  /// 2. Source flights before variant flights: a new variant flight must not join an older source
  ///    flight.
  /// 3. Tiers after the gate.
  ///
  /// A flight that enters the table later made its look-ups after the purge was published.
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

  /// Adds a failure to the negative cache, unless a purge covers it. Returns the error for the
  /// client.
  ///
  /// - Parameter generation: the purge generation of the failed work.
  func remember(
    _ error: ImageError, of key: CacheKey, since generation: Int, said: Freshness?
  ) -> ImageError {
    // Checks and adds in one critical section: a purge clears failures after it is published.
    failed.withLock { failed in
      purges.covers(key, generation: generation)
        ? error : failed.add(key, error, said: said, now: now())
    }
  }
}
