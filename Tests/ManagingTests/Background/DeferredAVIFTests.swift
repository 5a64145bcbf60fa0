// DeferredAVIFTests: tests deferred AVIFs: a faster format first, then the AVIF.

import Core
import TestSupport
import TestSupport
import Testing

@testable import Managing

final class DeferredAVIFTests: ManagedTests {
  private let avifGate = Gate()
  /// Opens all gates but the one for AVIFs. A WebP has 100 bytes, an AVIF `bytes`.
  private func open(avif bytes: Int = 60, frames: Int = 1) {
    openAll()
    processor.avifGate.withLock { $0 = avifGate }
    processor.result.withLock { result in
      result = { job in
        job.transform.accepted.first == .avif && frames == 1
          ? TestProcessor.image(bytes: bytes, format: .avif)
          : TestProcessor.image(bytes: 100, format: .webp, frames: frames)
      }
    }
  }

  private func wish(
    _ accepted: [ImageFormat] = [.avif, .webp], change: (inout LoadOptions) -> Void = { _ in }
  ) throws -> ImageRequest {
    var request = try wish { $0.accepted = accepted }
    change(&request.options)
    return request
  }

  private let mark = "http://marks/logo.png"

  private func marked(_ accepted: [ImageFormat] = [.avif, .webp]) throws -> ImageRequest {
    var transform = Transform()
    transform.watermark = Watermark(source: try SourceURL(parsing: mark))
    return ImageRequest(
      source: try SourceURL(parsing: "http://origin/a.jpg"), transform: transform
    ).accepting(accepted)
  }

  private func waitUntilMade() async throws {
    try await eventually { [manager] in manager.figures.avifsWaiting == 0 }
  }

  /// The accepted formats of all jobs so far.
  private var jobs: [[ImageFormat]] {
    processor.jobs.withLock { $0.map(\.transform.accepted) }
  }

  private let miss = CacheStatus.missed(.uriMiss)

  @Test func `the first response is a short-lived fallback, and the AVIF follows`()
    async throws
  {
    open()
    let wish = try wish()
    // When
    let first = try await manager.variant(for: wish)
    // Then
    #expect(first.variant.info.image?.format == .webp)
    #expect(first.cacheStatus == miss)
    #expect(first.variant.info.freshness.lifetime == DeferredAVIF.placeholderLifetime)
    #expect(manager.figures.avifsWaiting == 1)
    #expect(manager.cachedVariant(for: wish.key) == nil)
    // And
    avifGate.open()
    try await waitUntilMade()
    let second = try #require(manager.cachedVariant(for: wish.key))
    #expect(second.info.image?.format == .avif && second.info.freshness.lifetime == 3_600)
    #expect(second.info.etag == "\"d1\"")
    #expect(jobs == [[.webp], [.avif, .webp]])
    #expect(processor.jobs.withLock { $0.last?.priority?.observe { _ in } } == .low)
    #expect(loader.started.value == 1)
    #expect(manager.figures.avifsLater == 1)
    memory.remove(wish.key)
    #expect(try await manager.variant(for: wish).cacheStatus == .hit(.disk))
  }

  @Test func `a client without AVIF support gets the fallback with its full lifetime`() async throws
  {
    open()
    let other = try wish([.webp])
    _ = try await manager.variant(for: try wish())
    let kept = try #require(manager.cachedVariant(for: other.key))
    #expect(kept.info.freshness.lifetime == 3_600)
    // The cached fallback also serves clients that do not accept AVIF.
    #expect(jobs.count { $0 == [.webp] } == 1)
    let found = try await manager.variant(for: other)
    #expect(found.cacheStatus == .hit(.memory))
  }

  @Test
  func `a fallback's lifetime counts from its response and never exceeds its own`()
    async throws
  {
    open()
    _ = try await manager.variant(for: try wish([.webp]))
    pass(seconds: 600)
    let later = try await manager.variant(for: try wish())
    #expect(later.cacheStatus == .hit(.memory))
    #expect(later.variant.info.freshness.lifetime == 630)
    pass(seconds: 2_990)
    let last = try #require(manager.deliveryAtOnce(for: try wish()))
    #expect(last.variant.info.freshness.lifetime == 3_600)
  }

  @Test func `while an AVIF is encoded once, all requests get the fallback from memory`()
    async throws
  {
    open()
    let wish = try wish()
    #expect(manager.deliveryAtOnce(for: wish) == nil)
    _ = try await manager.variant(for: wish)
    for _ in 0..<100 {
      let delivery = try #require(manager.deliveryAtOnce(for: wish))
      #expect(delivery.cacheStatus == .hit(.memory))
      #expect(delivery.variant.info.image?.format == .webp)
      #expect(delivery.variant.info.freshness.lifetime == DeferredAVIF.placeholderLifetime)
    }
    try await eventually { [processor] in processor.started.value == 2 }
    _ = try await manager.variant(for: wish)
    avifGate.open()
    try await waitUntilMade()
    #expect(jobs == [[.webp], [.avif, .webp]])
  }

  @Test func `an AVIF on disk takes precedence over a fallback in memory`()
    async throws
  {
    open()
    avifGate.open()
    let wish = try wish()
    _ = try await manager.variant(for: wish)
    try await waitUntilMade()
    memory.remove(wish.key)
    #expect(manager.deliveryAtOnce(for: wish) == nil)
    #expect(try await manager.variant(for: wish).variant.info.image?.format == .avif)
  }

  @Test(arguments: [100, 101])
  func `an AVIF that is not smaller than its fallback is replaced by it`(
    bytes: Int
  ) async throws {
    open(avif: bytes)
    avifGate.open()
    let wish = try wish()
    _ = try await manager.variant(for: wish)
    try await waitUntilMade()
    let kept = try #require(manager.cachedVariant(for: wish.key))
    #expect(kept.info.image?.format == .webp && kept.info.freshness.lifetime == 3_600)
    memory.remove(wish.key)
    #expect(try await manager.variant(for: wish).cacheStatus == .hit(.disk))
    #expect(jobs.count == 2)
  }

  @Test func `a watermarked fallback is stored for as long as image and watermark are fresh`()
    async throws
  {
    // Given: a watermark loaded a thousand seconds before the image
    open(avif: 100)
    avifGate.open()
    _ = try await manager.variant(for: try request(mark))
    pass(seconds: 1_000)
    let wish = try marked()
    // When
    _ = try await manager.variant(for: wish)
    try await waitUntilMade()
    // Then
    let kept = try #require(manager.cachedVariant(for: wish.key))
    #expect(kept.info.image?.format == .webp && kept.info.freshness.receivedAt.seconds == 1_000)
  }

  @Test func `a fallback with an outdated watermark does not replace an AVIF`()
    async throws
  {
    open(avif: 100)
    avifGate.open()
    _ = try await manager.variant(for: try marked([.webp]))
    await disk.remove(CacheKey(source: try SourceURL(parsing: mark)))
    // When
    let wish = try marked()
    _ = try await manager.variant(for: wish)
    try await waitUntilMade()
    // Then
    #expect(manager.cachedVariant(for: wish.key)?.info.image?.format == .avif)
  }

  @Test func `a failed AVIF is retried after a while and does not count as a failed URL`()
    async throws
  {
    open()
    avifGate.open()
    processor.avifFailure.withLock { $0 = .undecodable(detail: "the encoder died") }
    let wish = try wish()
    _ = try await manager.variant(for: wish)
    try await waitUntilMade()
    #expect(manager.figures.avifsFailed == 1)
    for _ in 0..<5 {
      #expect(try await manager.variant(for: wish).variant.info.image?.format == .webp)
      #expect(manager.deliveryAtOnce(for: wish)?.variant.info.image?.format == .webp)
    }
    #expect(jobs.count == 2)
    #expect(manager.failedURLs().isEmpty)
    // When
    processor.avifFailure.withLock { $0 = nil }
    pass(seconds: BackgroundQueue<Int>.failureTime)
    _ = try await manager.variant(for: wish)
    try await waitUntilMade()
    #expect(jobs.count == 3)
  }

  @Test func `an animation has no deferred AVIF and is rendered once`() async throws {
    open(frames: 3)
    let wish = try wish()
    let first = try await manager.variant(for: wish)
    #expect(first.variant.info.freshness.lifetime == 3_600)
    #expect(manager.cachedVariant(for: wish.key)?.info.image?.frames == 3)
    #expect(jobs == [[.webp]])
    #expect(manager.figures.avifsWaiting == 0)
  }

  @Test func `a purge during encoding discards the AVIF, and the next request starts a new one`()
    async throws
  {
    open()
    let wish = try wish()
    _ = try await manager.variant(for: wish)
    try await eventually { [processor] in processor.started.value == 2 }
    _ = try await manager.purge(.url(wish.source))
    avifGate.open()
    try await waitUntilMade()
    #expect(memory.peek(wish.key) == nil)
    let again = try await manager.variant(for: wish)
    #expect(again.cacheStatus == miss && again.variant.info.image?.format == .webp)
    try await waitUntilMade()
    #expect(manager.cachedVariant(for: wish.key)?.info.image?.format == .avif)
    #expect(loader.started.value == 2)
  }

  @Test func `changed bytes replace an AVIF by a fallback, and the next AVIF is deferred`()
    async throws
  {
    open()
    loader.etag.withLock { $0 = "\"v1\"" }
    avifGate.open()
    let wish = try wish()
    _ = try await manager.variant(for: wish)
    try await waitUntilMade()
    // The source is unchanged, so the AVIF is revalidated and not encoded again.
    let renewed = try await manager.variant(for: try self.wish { $0.cache = .refresh })
    #expect(renewed.variant.info.image?.format == .avif && jobs.count == 2)
    // The source has changed.
    loader.etag.withLock { $0 = "\"v2\"" }
    avifGate.close()
    let changed = try await manager.variant(for: try self.wish { $0.cache = .refresh })
    #expect(changed.variant.info.image?.format == .webp)
    #expect(loader.started.value == 3, "the origin is asked once for both")
    #expect(manager.cachedVariant(for: wish.key) == nil)
    avifGate.open()
    try await waitUntilMade()
    #expect(manager.cachedVariant(for: wish.key)?.info.image?.format == .avif)
    #expect(jobs.count == 4)
  }

  @Test func `changed bytes that may not be stored are rendered as an AVIF`() async throws {
    open()
    avifGate.open()
    _ = try await manager.variant(for: try wish())
    try await waitUntilMade()
    pass(seconds: 3_601)
    loader.cacheControl.withLock { $0 = "no-store" }
    let changed = try await manager.variant(for: try wish())
    #expect(changed.variant.info.image?.format == .avif)
    #expect(jobs == [[.webp], [.avif, .webp], [.avif, .webp]])
  }

  @Test func `a stale fallback counts as served stale`() async throws {
    open()
    freshness.staleWhileRevalidate.withLock { $0 = 60 }
    _ = try await manager.variant(for: try wish())
    pass(seconds: 3_601)
    loader.gate.close()
    let delivery = try #require(manager.deliveryAtOnce(for: try wish()))
    #expect(delivery.cacheStatus == .staleHit(.memory, .whileRevalidating, ttl: -1))
    #expect(manager.freshnessFigures.staleWhileRevalidate == 1)
  }

  @Test
  func `a stale AVIF is revalidated in the background, and changed bytes then need no fallback`()
    async throws
  {
    open()
    freshness.staleWhileRevalidate.withLock { $0 = 60 }
    avifGate.open()
    let wish = try wish()
    _ = try await manager.variant(for: wish)
    try await waitUntilMade()
    pass(seconds: 3_601)
    let stale = try #require(manager.deliveryAtOnce(for: wish))
    #expect(stale.variant.info.image?.format == .avif)
    try await eventually { [manager] in manager.cachedVariant(for: wish.key) != nil }
    #expect(manager.cachedVariant(for: wish.key)?.info.image?.format == .avif)
    #expect(jobs == [[.webp], [.avif, .webp], [.avif, .webp]])
  }

  @Test func `requests that limit storage or read only the cache defer no AVIF`() async throws {
    open()
    avifGate.open()
    // Without the disk tier, an AVIF is not deferred.
    for tiers in [StoreTiers.memory, []] {
      let waiting = try await manager.variant(for: try wish { $0.store = tiers })
      #expect(waiting.variant.info.image?.format == .avif)
    }
    memory.remove(try wish().key)
    _ = try await manager.variant(for: try wish([.webp]))
    let only = try await manager.variant(for: try wish { $0.cache = .only })
    #expect(only.variant.info.image?.format == .webp)
    #expect(manager.figures.avifsWaiting == 0 && manager.figures.avifsLater == 0)
  }

  @Test func `an unstorable source is answered with a fallback each time`() async throws {
    open()
    loader.cacheControl.withLock { $0 = "no-store" }
    for _ in 0..<2 {
      #expect(try await manager.variant(for: try wish()).variant.info.image?.format == .webp)
    }
    #expect(manager.figures.avifsWaiting == 0)
    #expect(jobs == [[.webp], [.webp]])
  }

  @Test func `a request waits for an AVIF that is named, not its first choice, or not deferred`()
    async throws
  {
    open()
    avifGate.open()
    var named = Transform()
    named.format = .avif
    let request = ImageRequest(
      source: try SourceURL(parsing: "http://origin/b.jpg"), transform: named)
    _ = try await manager.variant(for: request)
    _ = try await manager.variant(for: try wish([.webp, .avif]))
    #expect(manager.figures.avifsLater == 0)
    let patient = manager { $0.defersAVIF = false }
    let waited = try await patient.variant(for: try wish())
    #expect(waited.variant.info.image?.format == .avif)
  }
}
