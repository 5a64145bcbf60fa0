// Invalidation: purges, clears and uploads, and what keeps running work from undoing them.

import Core
import Synchronization

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

  /// See `DiskCache`.
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

  /// See `CacheOperations`.
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

  /// See `CacheOperations`.
  public func clean() async -> CleanReport { await parts.disk.clean() }

  /// Returns what the tiers have of a request, without updating hit statistics.
  public func look(for request: ImageRequest) async -> CacheLookup {
    var lookup = await parts.cache.lookUp(request.key)
    lookup.source = await parts.store.entry(of: request.key.source)
    return lookup
  }

  /// See `CacheOperations`. A download that began before the upload does not replace it.
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

/// Removes purged variants from memory. A small tier is searched before the answer; in a large one,
/// hits check the list of purges until one sweep has removed the variants of all purges that wait.
final class MemorySweep: Sendable {
  /// Up to this number of variants, a purge searches them itself.
  static let quickCount = 4_096

  private struct State {
    var isRunning = false
    /// The first purge that waits for a sweep that has not begun.
    var first: Int?
  }

  private let memory: any MemoryCache
  private let purges: any PurgeList
  private let validity: EntryValidity
  private let state = Lock(State())
  /// Variants of purges up to this number are not in memory.
  private let done = Atomic<Int>(0)

  init(memory: any MemoryCache, purges: any PurgeList, validity: EntryValidity) {
    self.memory = memory
    self.purges = purges
    self.validity = validity
  }

  /// Returns what `mayServe` compares with. Read it before the look-up: a sweep may end in between.
  var mark: Int { done.load(ordering: .acquiring) }

  /// Returns whether a variant that memory had after `mark` is not purged. Allocates nothing unless
  /// a sweep is due.
  func mayServe(_ variant: Variant, since mark: Int) -> Bool {
    !purges.covers(variant.key, generation: max(variant.info.generation, mark))
  }

  /// Removes the variants of a purge that no writer may undo any more.
  ///
  /// - Returns: their number; `nil` if they are still being searched.
  func remove(_ purge: Purge) -> Int? {
    guard memory.count > Self.quickCount, purge.scope != .everything else {
      let count = memory.removeAll { [purges] in
        purges.covers($0.key, generation: purge.number - 1)
      }
      state.withLock { state in
        if state.isRunning {
          state.first = min(state.first ?? purge.number, purge.number)
        } else {
          done.store(max(mark, purge.number), ordering: .releasing)
        }
      }
      return count
    }
    let starts = state.withLock { state in
      state.first = min(state.first ?? purge.number, purge.number)
      // A later purge may have been carried out before.
      done.store(min(mark, purge.number - 1), ordering: .releasing)
      defer { state.isRunning = true }
      return !state.isRunning
    }
    if starts { Task(priority: .utility) { await run() } }
    return nil
  }

  /// Sweeps until no purge waits, for a tenth of the time at most.
  private func run() async {
    repeat {
      let start = ContinuousClock.now
      sweep()
      try? await Task.sleep(for: min(start.duration(to: .now) * 10, .seconds(2)))
    } while state.withLock { state in
      state.isRunning = state.first != nil
      return state.isRunning
    }
  }

  private func sweep() {
    let last = state.withLock { state in
      state.first = nil
      return purges.generation
    }
    // Their purges may not have got this far.
    validity.waitForWriters()
    let mark = mark
    _ = memory.removeAll { [purges] in
      purges.covers($0.key, generation: max($0.info.generation, mark))
    }
    state.withLock { state in
      done.store(state.first.map { min(last, $0 - 1) } ?? last, ordering: .releasing)
    }
  }
}
