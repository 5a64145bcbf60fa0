// The manager's neighbours as the tests play them: each waits, counts or fails as a test tells it to.

import Glibc
import Model
import Platform

@testable import Managing

/// Opens once; whoever waits at it goes on then, or when its task is cancelled.
final class Gate: Sendable {
  private struct State {
    var isOpen = false
    var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
    var last = 0
  }
  private let state = Lock(State())

  func open() {
    let waiting = state.withLock { state in
      state.isOpen = true
      defer { state.waiting = [:] }
      return state.waiting
    }
    for continuation in waiting.values { continuation.resume() }
  }

  func pass() async {
    let id = state.withLock { state in
      state.last += 1
      return state.last
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let goesOn = state.withLock { state in
          if state.isOpen || Task.isCancelled { return true }
          state.waiting[id] = continuation
          return false
        }
        if goesOn { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.waiting.removeValue(forKey: id) }?.resume()
    }
  }
}

/// A number tests can wait for.
final class Count: Sendable {
  private let storage = Lock(0)
  var value: Int { storage.withLock { $0 } }
  func add() { storage.withLock { $0 += 1 } }
}

/// What a test waited for and did not get.
struct NeverHappened: Error {}

/// Waits until `condition` holds; throws after ten seconds, so that a broken manager fails a test and hangs none.
func waitUntil(_ condition: @Sendable () -> Bool) async throws {
  for _ in 0..<10_000 {
    if condition() { return }
    try await Task.sleep(for: .milliseconds(1))
  }
  throw NeverHappened()
}

final class TestMemory: MemoryCache {
  private let kept = Lock<[CacheKey: Variant]>([:])
  func variant(for key: CacheKey) -> Variant? { kept.withLock { $0[key] } }
  func peek(_ key: CacheKey) -> Variant? { variant(for: key) }
  func store(_ variant: Variant) -> Bool {
    kept.withLock { $0[variant.key] = variant }
    return true
  }
  func remove(_ key: CacheKey) { kept.withLock { $0[key] = nil } }
  func removeVariants(of source: CacheKey) {
    kept.withLock { kept in kept = kept.filter { $0.key.source != source } }
  }
}

final class TestDisk: DiskCache {
  private let variants = Lock<[CacheKey: Variant]>([:])
  private let sources = Lock<[CacheKey: Source]>([:])
  func variant(for key: CacheKey) async -> Variant? { variants.withLock { $0[key] } }
  /// What `variantAtOnce` may give; the rest takes waiting.
  let atHand = Lock<Set<CacheKey>>([])
  func variantAtOnce(for key: CacheKey, where isWanted: (VariantInfo) -> Bool) -> Variant? {
    guard atHand.withLock({ $0.contains(key) }), let variant = variants.withLock({ $0[key] }),
      isWanted(variant.info)
    else { return nil }
    return variant
  }
  func source(for key: CacheKey) async -> Source? { sources.withLock { $0[key] } }
  func store(_ variant: Variant) -> Bool {
    variants.withLock { $0[variant.key] = variant }
    return true
  }
  func store(_ source: Source) -> Bool {
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
}

final class TestLoader: ImageLoader {
  let gate = Gate()
  let started = Count()
  let cancelled = Count()
  let failure = Lock<ImageError?>(nil)
  let cacheControl = Lock<String?>(nil)
  let lastModified = Lock<String?>(nil)
  let etag = Lock<String?>(nil)
  /// Of every load so far.
  let requests = Lock<[LoadRequest]>([])

  func load(_ request: LoadRequest) async throws(ImageError) -> LoadResult {
    requests.withLock { $0.append(request) }
    started.add()
    await gate.pass()
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
    return .fetched(Download(file: emptyFile(), origin: origin, timings: Timings()))
  }
}

final class TestProcessor: ImageProcessor {
  let failure = Lock<ImageError?>(nil)
  let gate = Gate()
  let started = Count()
  let cancelled = Count()

  func process(_ job: ImageJob) async throws(ImageError) -> ProcessedImage {
    started.add()
    await gate.pass()
    if Task.isCancelled {
      cancelled.add()
      throw .cancelled
    }
    if let failure = failure.withLock({ $0 }) { throw failure }
    return ProcessedImage(
      bytes: [1, 2, 3].withUnsafeBytes { ImageBytes(copying: $0) }, format: .jpeg,
      size: PixelSize(width: 3, height: 1), frames: 1,
      density: 1, scaledDownFrom: nil, digest: "d1", timings: Timings())
  }
}

/// An hour for everything but `no-store`.
struct TestFreshness: FreshnessPolicy {
  func freshness(of origin: OriginResponse, receivedAt now: UnixTime) -> Freshness {
    Freshness(receivedAt: now, lifetime: 3_600, isStorable: origin.cacheControl != "no-store")
  }
}

func emptyFile() -> FileRegion {
  FileRegion(owning: open("/dev/null", O_RDONLY | O_CLOEXEC), count: 0)
}

/// A manager among its doubles, made anew for each test.
class ManagedTests {
  final class Clock: Sendable {
    let seconds = Lock(1_000)
  }

  let memory = TestMemory()
  let disk = TestDisk()
  let loader = TestLoader()
  let processor = TestProcessor()
  let clock = Clock()
  let manager: ImageManager

  init() {
    manager = ImageManager(
      memory: memory, disk: disk, loader: loader, processor: processor,
      freshnessPolicy: TestFreshness(),
      now: { [clock] in UnixTime(seconds: clock.seconds.withLock { $0 }) })
  }

  /// A request for a picture at the origin, with its options as `change` leaves them.
  func request(
    _ url: String = "http://origin/a.jpg", scale: Double? = nil,
    _ change: (inout LoadOptions) -> Void = { _ in }
  ) throws -> ImageRequest {
    var transform = Transform()
    transform.scale = scale
    var request = ImageRequest(source: try SourceURL(parsing: url), transform: transform)
    change(&request.options)
    return request
  }

  /// Lets loads and jobs end as soon as they began.
  func openAll() {
    loader.gate.open()
    processor.gate.open()
  }

  /// So many seconds later.
  func pass(seconds: Int) { clock.seconds.withLock { $0 += seconds } }
}
