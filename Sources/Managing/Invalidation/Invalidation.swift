// Invalidation: purges, clears and uploads, and what keeps running work from undoing them.

import Core

extension ImageManager: CacheOperations {
  /// Applies a purge, then tells the other machines, even if a step failed here.
  ///
  /// - Throws: as `applyPurge` and `SharedCache.publish`.
  public func purge(_ scope: PurgeScope) async throws(ImageError) -> PurgeReport {
    let number = parts.fleet?.beginPurge(scope) ?? 0
    let report: PurgeReport
    do throws(ImageError) {
      report = try await carryOut(scope)
    } catch {
      // The first error is the answer.
      try? await parts.fleet?.publish(scope, number: number, isDurable: false)
      throw error
    }
    try await parts.fleet?.publish(scope, number: number, isDurable: true)
    return report
  }

  /// Makes purges durable that are in force and could not be recorded.
  ///
  /// - Throws: `internal` if they still cannot.
  public func recordPurges() async throws(ImageError) { try await parts.disk.recordPurges() }

  /// Applies a purge that another machine has published. Does not publish it again.
  ///
  /// - Throws: `internal` if the purge cannot be made durable. It is in force nevertheless.
  public func applyPurge(_ scope: PurgeScope) async throws(ImageError) {
    _ = try await carryOut(scope)
  }

  /// Publishes a purge to all parts of this machine and applies it. The purge takes effect when it
  /// is published, even if a later step fails.
  ///
  /// The order matters:
  /// 1. Remove failures, then retire flights. Otherwise a new flight finds a purged failure.
  /// 2. Retire source flights, then variant flights. Otherwise a new variant flight joins an old
  ///    source flight.
  /// 3. Wait for writers, then empty the tiers. Otherwise a writer that checked before the purge
  ///    was published stores its entry afterwards.
  ///
  /// A flight that starts after step 2 sees the purge in each look-up. A miss checks a source that
  /// its request already holds.
  ///
  /// - Throws: `internal` if the disk tier cannot make the purge durable. It is in force
  ///   nevertheless.
  private func carryOut(_ scope: PurgeScope) async throws(ImageError) -> PurgeReport {
    let purge = parts.purges.add(scope)
    // Covered after the previous number: by this purge, or by a later one. The list knows the tags
    // of hosts.
    let matches: (CacheKey) -> Bool = { [purges = parts.purges] key in
      purges.covers(key, generation: purge.number - 1)
    }
    var report = PurgeReport()
    report.failed = parts.failures.removeAll(where: matches)
    sources.flights.retire { matches($0.key) }
    flights.retire { matches($0.key) }
    parts.validity.waitForWriters()
    report.memory = parts.sweep.remove(purge)
    report.disk = try await parts.disk.purge(purge)
    return report
  }

  /// Empties the given tiers. All tiers together are a purge of everything.
  ///
  /// One tier alone keeps failures and flights: an entry that is being written may appear in it
  /// later.
  ///
  /// - Throws: `internal` if the disk tier cannot make the result durable.
  public func clear(_ tiers: StoreTiers) async throws(ImageError) -> PurgeReport {
    guard tiers != .all else { return try await purge(.everything) }
    var report = PurgeReport()
    if tiers.contains(.memory) { report.memory = parts.memory.removeAll { _ in true } }
    if tiers.contains(.disk) { report.disk = try await parts.disk.clear() }
    return report
  }

  /// Removes matching entries from one tier, without the guarantees of a purge.
  ///
  /// - Throws: as `CacheOperations.remove`.
  public func remove(
    _ scope: PurgeScope, from tier: CacheTier, filter: CacheKeyFilter
  ) async throws(ImageError) -> PurgeReport {
    var report = PurgeReport()
    switch (tier, scope) {
    case (.all, _): return try await purge(scope)
    case (.memory, _):
      report.memory = parts.memory.removeAll { scope.matches($0.key, filter: filter) }
    case (.disk, .everything): report.disk = try await parts.disk.clear()
    case (.disk, .url(let url)): report.disk = await parts.disk.remove(allOf: url)
    case (.disk, _):
      throw .invalidParameter(
        name: "tier", value: tier.rawValue,
        allowed: "with prefix, host or tag: memory, shared or all")
    case (.shared, _):
      guard let fleet = parts.fleet else {
        throw .invalidParameter(
          name: "tier", value: tier.rawValue,
          allowed: "memory, disk or all: without fleet.redis nothing is shared")
      }
      let number = fleet.beginPurge(scope)
      try await fleet.publish(scope, number: number, isDurable: true)
    }
    return report
  }

  /// Removes expired entries from the disk tier, and evicts others if the tier is nearly full.
  public func clean() async -> CleanReport { await parts.disk.clean() }

  /// Returns what the tiers have of a request, without updating hit statistics.
  public func look(for request: ImageRequest) async -> CacheLookup {
    var lookup = await parts.cache.lookUp(request.key)
    lookup.source = await parts.store.entry(of: request.key.source)
    return lookup
  }

  /// Stores an image as the source of `url`. A download that began before the upload does not
  /// replace it.
  ///
  /// - Parameter origin: the response that the image would have come with.
  /// - Throws: `forbiddenSource` for local files, `unsupportedFormat`, `invalidParameter` if the
  ///   response may not be stored, `overloaded` if the disk tier does not accept it.
  public func put(
    _ url: SourceURL, file: FileRegion, origin: OriginResponse
  ) async throws(ImageError) -> PurgeReport {
    guard url.scheme != .local else {
      throw .forbiddenSource(reason: "a local file is read from where it is", detail: "")
    }
    let beginning = await parts.files.beginning(of: file, upTo: FormatSigns.limit)
    let format = beginning?.withUnsafeBytes { FormatSigns.format(ofSource: $0) }
    guard let format, parts.imaging.settings.withLock({ $0.formats.contains(format) }) else {
      throw .unsupportedFormat(detail: "\(file.count) bytes of \(format?.rawValue ?? "no image")")
    }
    let freshness = parts.freshness.freshness(of: origin, from: url, isAuthorized: false)
    guard freshness.isStorable else {
      throw .invalidParameter(
        name: "Cache-Control", value: origin.cacheControl ?? "", allowed: "what may be stored")
    }
    let report = try await purge(.url(url))
    let key = CacheKey(source: url)
    var origin = origin
    origin.isUploaded = true
    guard parts.store.storeUpload(file, of: key, origin: origin, freshness: freshness) else {
      throw .overloaded(queue: "disk", retryAfter: 1)
    }
    // Invalidates all data that was downloaded or rendered since the purge.
    await invalidateVariants(of: key)
    return report
  }

  /// Invalidates the variants of a replaced source, and retires flights that may use its old bytes.
  ///
  /// Call after the new version is recorded. Disk comes before memory, because disk hits fill
  /// memory.
  private func invalidateVariants(of source: CacheKey) async {
    sources.flights.retire { $0.key == source }
    flights.retire { $0.key.source == source }
    parts.validity.waitForWriters()
    await parts.disk.removeVariants(of: source)
    parts.memory.removeVariants(of: source)
  }
}
