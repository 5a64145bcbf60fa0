// Doubles: test doubles for the manager's dependencies.

import Core
import Glibc
import TestSupport

@testable import Managing

/// A counter that tests can wait for.
final class Count: Sendable {
  private let storage = Lock(0)
  var value: Int { storage.withLock { $0 } }
  func add() { storage.withLock { $0 += 1 } }
}

/// Calls `action` when it is released.
final class Ending: PreparedAnswer, @unchecked Sendable {
  private let action: @Sendable () -> Void
  init(_ action: @escaping @Sendable () -> Void) { self.action = action }
  deinit { action() }
}

final class TestMemory: MemoryCache {
  private let kept = Lock<[CacheKey: Variant]>([:])
  /// Hooks, each called once: before and after the next store, and before the next removal.
  let beforeStore = Lock<(@Sendable () -> Void)?>(nil)
  let afterStore = Lock<(@Sendable () -> Void)?>(nil)
  let beforeRemoval = Lock<(@Sendable () -> Void)?>(nil)
  private func call(_ hook: Lock<(@Sendable () -> Void)?>) {
    hook.withLock { hook in
      defer { hook = nil }
      return hook
    }?()
  }
  func variant(for key: CacheKey) -> Variant? { kept.withLock { $0[key] } }
  /// The number of counted look-ups.
  let lookups = Count()
  func variant(for key: CacheKey, freshAt now: UnixTime) -> Variant? {
    lookups.add()
    return variant(for: key).flatMap { $0.info.freshness.isFresh(at: now) ? $0 : nil }
  }
  func peek(_ key: CacheKey) -> Variant? { variant(for: key) }
  /// What the next store evicts.
  let evicted = Lock<[Variant]>([])
  func store(_ variant: Variant, releasing gone: inout [Variant]) -> Bool {
    call(beforeStore)
    kept.withLock { $0[variant.key] = variant }
    gone += evicted.withLock { evicted in
      defer { evicted = [] }
      return evicted
    }
    call(afterStore)
    return true
  }
  func exchange(_ old: Variant, for variant: Variant, releasing gone: inout [Variant]) -> Bool {
    kept.withLock { kept in
      guard kept[old.key] === old else { return false }
      kept[old.key] = variant
      return true
    }
  }
  func remove(_ key: CacheKey) { kept.withLock { $0[key] = nil } }
  func removeVariants(of source: CacheKey) {
    kept.withLock { kept in kept = kept.filter { $0.key.source != source } }
  }
  func removeAll(where matches: (Variant) -> Bool) -> Int {
    call(beforeRemoval)
    return kept.withLock { kept in
      let keys = kept.values.filter(matches).map(\.key)
      for key in keys { kept[key] = nil }
      return keys.count
    }
  }
  /// The number that `count` states at least.
  let size = Lock(0)
  var count: Int { max(kept.withLock { $0.count }, size.withLock { $0 }) }
}

final class TestDisk: DiskCache {
  private let variants = Lock<[CacheKey: Variant]>([:])
  private let sources = Lock<[CacheKey: Source]>([:])
  /// The number of started reads, and the gate at which they wait after reading.
  let reading = Count()
  let readGate = Lock<Gate?>(nil)
  /// Whether the disk rejects sources.
  let isFull = Lock(false)
  func variant(for key: CacheKey) async -> Variant? {
    let variant = variants.withLock { $0[key] }
    if let gate = readGate.withLock({ $0 }) {
      reading.add()
      await gate.pass()
    }
    return variant
  }
  /// The keys that `variantAtOnce` may return. All others would block.
  let atHand = Lock<Set<CacheKey>>([])
  func variantAtOnce(for key: CacheKey, where isWanted: (VariantInfo) -> Bool) -> Variant? {
    guard atHand.withLock({ $0.contains(key) }), let variant = variants.withLock({ $0[key] }),
      isWanted(variant.info)
    else { return nil }
    return variant
  }
  /// The number of started reads of sources, and the gate at which they wait after reading.
  let readingSources = Count()
  let sourceGate = Lock<Gate?>(nil)
  func source(for key: CacheKey) async -> Source? {
    let source = sources.withLock { $0[key] }
    if let gate = sourceGate.withLock({ $0 }) {
      readingSources.add()
      await gate.pass()
    }
    return source
  }
  /// Whether variants are deferred at their first request.
  let defersFirst = Lock(false)
  /// The demands for which variants were stored, in order.
  let demands = Lock<[VariantDemand]>([])
  func store(_ variant: Variant, for demand: VariantDemand) -> StoreOutcome {
    if demand == .first, defersFirst.withLock({ $0 }) { return .deferred }
    demands.withLock { $0.append(demand) }
    variants.withLock { $0[variant.key] = variant }
    return .stored
  }
  func remove(allOf url: SourceURL) async -> Int {
    let all = variants.withLock { Array($0.keys) } + sources.withLock { Array($0.keys) }
    let removed = all.filter { $0.url == url.text }
    for key in removed { await remove(key) }
    return removed.count
  }
  func store(_ source: Source) -> Bool {
    guard !isFull.withLock({ $0 }) else { return false }
    sources.withLock { $0[source.key] = source }
    return true
  }
  func remove(_ key: CacheKey) async {
    variants.withLock { $0[key] = nil }
    sources.withLock { $0[key] = nil }
  }
  func removeVariants(of source: CacheKey) async {
    variants.withLock { kept in kept = kept.filter { $0.key.source != source } }
  }
  /// The purges received. None is carried out, so readers have to check the list of purges.
  let purged = Lock<[Purge]>([])
  /// The gate at which purges wait.
  let purgeGate = Lock<Gate?>(nil)
  func recordPurges() async throws(ImageError) {}
  func purge(_ purge: Purge) async throws(ImageError) -> Int? {
    purged.withLock { $0.append(purge) }
    await purgeGate.withLock { $0 }?.pass()
    return nil
  }
  func clear() async -> Int {
    variants.withLock { kept in
      defer { kept = [:] }
      return kept.count
    }
      + sources.withLock { kept in
        defer { kept = [:] }
        return kept.count
      }
  }
  func clean() async -> CleanReport { CleanReport() }
  func look(for key: CacheKey) async -> CacheEntryInfo? {
    if let variant = variants.withLock({ $0[key] }) {
      return CacheEntryInfo(variant)
    }
    return sources.withLock { $0[key] }.map { CacheEntryInfo($0) }
  }
}

/// A list of purges, numbered from 1.
final class TestPurges: PurgeList {
  private let purges = Lock<[Purge]>([])
  private let last = Lock(0)
  var generation: Int { last.withLock { $0 } }
  func covers(_ key: CacheKey, generation: Int) -> Bool {
    purges.withLock { purges in
      purges.contains { $0.number > generation && $0.scope.matches(key, filter: CacheKeyFilter()) }
    }
  }
  func add(_ scope: PurgeScope) -> Purge {
    purges.withLock { purges in
      let number = last.withLock { last in
        last += 1
        return last
      }
      purges.append(Purge(number: number, scope: scope))
      return purges[purges.count - 1]
    }
  }
  /// Removes the purges before a number.
  func forget(before number: Int) { purges.withLock { $0.removeAll { $0.number < number } } }
}

final class TestLoader: ImageLoader {
  let gate = Gate()
  /// Gates for single loads, by load number from 1. All others wait at `gate`.
  let gates = Lock<[Int: Gate]>([:])
  let started = Count()
  let cancelled = Count()
  let failure = Lock<ImageError?>(nil)
  let cacheControl = Lock<String?>(nil)
  let lastModified = Lock<String?>(nil)
  let etag = Lock<String?>(nil)
  /// The version of the bodies; `nil`: a random one each.
  let version = Lock<UInt64?>(nil)
  /// What `outlook` returns.
  let outlook = Lock<LoadOutlook?>(nil)
  func outlook(for url: SourceURL) async -> LoadOutlook? { outlook.withLock { $0 } }
  /// The body to return.
  let body = Lock<[UInt8]>([])
  /// All requests so far.
  let requests = Lock<[LoadRequest]>([])

  func load(_ request: LoadRequest) async throws(ImageError) -> LoadResult {
    let number = requests.withLock { requests in
      requests.append(request)
      return requests.count
    }
    started.add()
    await (gates.withLock { $0[number] } ?? gate).pass()
    if Task.isCancelled {
      cancelled.add()
      throw .cancelled
    }
    if let failure = failure.withLock({ $0 }) { throw failure }
    var origin = OriginResponse(status: 200)
    origin.cacheControl = cacheControl.withLock { $0 }
    origin.lastModified = lastModified.withLock { $0 }
    origin.etag = etag.withLock { $0 }
    if let etag = origin.etag, request.validators?.etag == etag {
      origin.status = 304
      return .notModified(origin, Timings())
    }
    let body = body.withLock { $0 }
    let file: FileRegion
    do { file = try body.isEmpty ? emptyFile() : FileRegion.sealed(body) } catch {
      throw .internal(detail: "\(error)")
    }
    let version = version.withLock { $0 } ?? .random(in: 1...(.max))
    return .fetched(Download(file: file, origin: origin, timings: Timings(), version: version))
  }
}

final class TestProcessor: ImageProcessor {
  let failure = Lock<ImageError?>(nil)
  let gate = Gate()
  let started = Count()
  let cancelled = Count()
  /// Returns the result of a job; `nil`: three bytes of JPEG.
  let result = Lock<(@Sendable (ImageJob) -> ProcessedImage)?>(nil)
  /// All jobs so far.
  let jobs = Lock<[ImageJob]>([])
  /// The gate and the failure of jobs for AVIFs, if they differ from other jobs.
  let avifGate = Lock<Gate?>(nil)
  let avifFailure = Lock<ImageError?>(nil)

  /// Returns an image of `bytes` bytes.
  static func image(
    bytes: Int, format: ImageFormat, size: PixelSize = PixelSize(width: 3, height: 1),
    frames: Int = 1, scaledDownFrom: PixelSize? = nil
  ) -> ProcessedImage {
    ProcessedImage(
      body: .memory(
        [UInt8](repeating: 1, count: bytes).withUnsafeBytes { ImageBytes(copying: $0) }),
      report: RenderReport(
        content: .image(
          RenderedImage(
            format: format, size: size, frames: frames, density: 1,
            scaledDownFrom: scaledDownFrom)),
        digest: "d1"))
  }

  func process(_ job: ImageJob) async throws(ImageError) -> ProcessedImage {
    started.add()
    jobs.withLock { $0.append(job) }
    let isAVIF = job.transform.accepted.first == .avif
    await ((isAVIF ? avifGate.withLock { $0 } : nil) ?? gate).pass()
    if Task.isCancelled {
      cancelled.add()
      throw .cancelled
    }
    if let failure = failure.withLock({ $0 }) { throw failure }
    if isAVIF, let failure = avifFailure.withLock({ $0 }) { throw failure }
    return result.withLock { $0 }?(job) ?? Self.image(bytes: 3, format: .jpeg)
  }
}

/// A policy with a lifetime of an hour, but for `no-cache` and `no-store`, and stale times.
final class TestFreshness: FreshnessPolicy {
  func rule(of origin: OriginResponse, from url: SourceURL, at now: Moment) -> String { "a rule" }
  let staleWhileRevalidate = Lock(0)
  let staleIfError = Lock(0)

  func freshness(
    of origin: OriginResponse, from url: SourceURL, isAuthorized: Bool, at now: Moment
  ) -> Freshness {
    Freshness(
      receivedAt: now.time, lifetime: origin.cacheControl == "no-cache" ? 0 : 3_600,
      isStorable: origin.cacheControl != "no-store",
      staleWhileRevalidate: staleWhileRevalidate.withLock { $0 },
      staleIfError: staleIfError.withLock { $0 })
  }
}

/// One empty file for all tests: `TestProcessor` keeps thousands of jobs with their files.
private let sharedEmptyFile: FileRegion = {
  let descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
  precondition(descriptor >= 0, "no /dev/null: errno \(errno)")
  return FileRegion(owning: descriptor, count: 0)
}()

func emptyFile() -> FileRegion { sharedEmptyFile }
