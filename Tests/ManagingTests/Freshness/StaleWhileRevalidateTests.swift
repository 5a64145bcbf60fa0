// StaleWhileRevalidateTests: tests stale responses during a revalidation (RFC 5861, section 3).

import Core
import TestSupport
import Testing

@testable import Managing

/// A fixture with stale images.
class StaleTests: ManagedTests {
  /// Caches an image with a lifetime of one hour and makes it five seconds stale.
  func makeStale(
    whileRevalidate: Int = 0, ifError: Int = 0, _ scales: [Double?] = [nil]
  ) async throws {
    freshness.staleWhileRevalidate.withLock { $0 = whileRevalidate }
    freshness.staleIfError.withLock { $0 = ifError }
    loader.etag.withLock { $0 = "\"v1\"" }
    openAll()
    for scale in scales { _ = try await manager.variant(for: try request(scale: scale)) }
    pass(seconds: 3_605)
  }

  /// Does the same with an origin that hangs until its gate opens.
  func makeStaleAndHang(_ scales: [Double?] = [nil]) async throws {
    try await makeStale(whileRevalidate: 10, scales)
    loader.gate.close()
  }

  func fail(_ error: ImageError?) { loader.failure.withLock { $0 = error } }

  func waitUntilFresh(_ request: ImageRequest) async throws {
    try await eventually { [manager] in manager.cachedVariant(for: request.key) != nil }
    try await eventually { [manager] in manager.figures.variants == 0 }
  }
}

final class StaleWhileRevalidateTests: StaleTests {
  @Test
  func `a stale image is served at once while the origin hangs, and becomes fresh afterwards`()
    async throws
  {
    // Given
    try await makeStaleAndHang()
    let request = try request()
    #expect(manager.cachedVariant(for: request.key) == nil)
    // When
    let answer = try #require(manager.deliveryAtOnce(for: request))
    // Then
    #expect(answer.cacheStatus == .staleHit(.memory, .whileRevalidating, ttl: -5))
    try await eventually { [loader] in loader.started.value == 2 }
    #expect(manager.cachedVariant(for: request.key) == nil)
    loader.gate.open()
    try await waitUntilFresh(request)
    // The variant was revalidated and not rendered again.
    #expect(processor.started.value == 1)
    #expect(loader.requests.withLock { $0.last?.validators?.etag } == "\"v1\"")
    #expect(loader.requests.withLock { $0.last?.priority?.observe { _ in } } == .low)
    #expect(
      loader.requests.withLock { $0.last?.priority?.observeClients { _ in } } == [.background])
    #expect(manager.freshnessFigures.staleWhileRevalidate == 1)
    #expect(manager.freshnessFigures.revalidations == 1)
    #expect(manager.freshnessFigures.revalidationsFailed == 0)
  }

  @Test func `a stale variant on disk is served in the same way, with or without blocking`()
    async throws
  {
    try await makeStaleAndHang()
    let request = try request()
    memory.remove(request.key)
    let answer = try await manager.variant(for: request)
    #expect(answer.cacheStatus == .staleHit(.disk, .whileRevalidating, ttl: -5))
    memory.remove(request.key)
    disk.atHand.withLock { _ = $0.insert(request.key) }
    #expect(
      manager.deliveryAtOnce(for: request)?.cacheStatus
        == .staleHit(.disk, .whileRevalidating, ttl: -5))
    loader.gate.open()
    try await waitUntilFresh(request)
    #expect(loader.started.value == 2)
  }

  @Test func `a variant of a stale source is served in the same way`() async throws {
    try await makeStaleAndHang()
    let other = try request(scale: 0.5)
    let answer = try await manager.variant(for: other)
    #expect(answer.cacheStatus == .staleHit(.source, .whileRevalidating, ttl: -5))
    loader.gate.open()
    try await waitUntilFresh(other)
    #expect(try await manager.variant(for: other).cacheStatus == .hit(.memory))
    #expect(loader.started.value == 2)
  }

  @Test func `any number of requests cause one revalidation for all sizes`() async throws {
    let scales: [Double?] = [nil, 0.5, 0.25]
    try await makeStaleAndHang(scales)
    for _ in 0..<20 {
      for scale in scales {
        let request = try request(scale: scale)
        #expect(manager.deliveryAtOnce(for: request) != nil)
        _ = try await manager.variant(for: request)
      }
    }
    try await eventually { [manager, loader] in
      manager.figures.variants == 3 && loader.started.value == 2
    }
    loader.gate.open()
    for scale in scales { try await waitUntilFresh(try request(scale: scale)) }
    #expect(loader.started.value == 2)
    #expect(processor.started.value == 3)
    #expect(manager.freshnessFigures.staleWhileRevalidate == 120)
    #expect(manager.freshnessFigures.revalidations == 3)
  }

  @Test func `a request that rejects stale responses joins the running revalidation`() async throws
  {
    try await makeStaleAndHang()
    let request = try request()
    _ = manager.deliveryAtOnce(for: request)
    try await eventually { [loader] in loader.started.value == 2 }
    pass(seconds: 10)
    let waiting = ImagingAccounts.$current.withValue(UnlimitedAccount()) {
      asking(request)
    }
    try await eventually { [manager] in manager.figures.waiting >= 4 }
    // A client waits now, so the priority was raised, and the download is that client's, too.
    #expect(
      loader.requests.withLock { $0.last?.priority?.observeClients { _ in } }
        == [.background, .unlimited])
    #expect(loader.requests.withLock { $0.last?.priority?.observe { _ in } } == .normal)
    loader.gate.open()
    let answer = try await waiting.value
    #expect(answer.variant.info.freshness.isFresh(at: now()))
    #expect(loader.started.value == 2)
  }

  @Test func `changed bytes replace every variant of the old ones`() async throws {
    try await makeStaleAndHang([nil, 0.5])
    let request = try request()
    let old = try #require(manager.deliveryAtOnce(for: request))
    loader.etag.withLock { $0 = "\"v2\"" }
    loader.gate.open()
    try await waitUntilFresh(request)
    let new = try #require(manager.cachedVariant(for: request.key))
    #expect(new.info.sourceVersion != old.variant.info.sourceVersion)
    #expect(memory.variant(for: try self.request(scale: 0.5).key) == nil)
    #expect(processor.started.value == 3)
  }

  @Test(arguments: ["refresh", "bypass", "max-age", "min-fresh", "max-stale", "no store"])
  func `a request with demands on age, cache or storage gets no stale response`(_ demand: String)
    async throws
  {
    try await makeStale(whileRevalidate: 10)
    let request = try request { options in
      switch demand {
      case "refresh": options.cache = .refresh
      case "bypass": options.cache = .bypass
      case "max-age": options.age.maxAge = 4_000
      case "min-fresh": options.age.minFresh = 1
      case "max-stale": options.age.maxStale = 4
      default: options.store = []
      }
    }
    #expect(manager.deliveryAtOnce(for: request) == nil)
    let answer = try await manager.variant(for: request)
    #expect(answer.variant.info.freshness.isFresh(at: now()))
    #expect(loader.started.value == 2)
    #expect(manager.freshnessFigures.revalidations == 0)
    #expect(manager.freshnessFigures.staleWhileRevalidate == 0)
    #expect(manager.freshnessFigures.maxStale == 0)
  }

  @Test func `a cache-only request gets a stale entry and starts no load`() async throws {
    try await makeStale(whileRevalidate: 10)
    let only = try request { $0.cache = .only }
    #expect(
      try await manager.variant(for: only).cacheStatus
        == .staleHit(.memory, .whileRevalidating, ttl: -5))
    #expect(manager.freshnessFigures.revalidations == 0)
    pass(seconds: 5)
    await #expect(throws: ImageError.notCached) { try await self.manager.variant(for: only) }
    // A missing cache entry says nothing about the origin.
    #expect(manager.freshnessFigures.failingSources == 0)
    #expect(loader.started.value == 1)
  }

  @Test func `a failed revalidation is not repeated before its interval ends`()
    async throws
  {
    try await makeStale(whileRevalidate: 100)
    fail(.sourceError(status: 403))
    let request = try request()
    for _ in 0..<3 {
      #expect(manager.deliveryAtOnce(for: request) != nil)
      try await eventually { [manager] in manager.freshnessFigures.revalidationsFailed == 1 }
    }
    #expect(loader.started.value == 2)
    #expect(manager.freshnessFigures.failingSources == 1)
    pass(seconds: 10)
    fail(nil)
    #expect(manager.deliveryAtOnce(for: request) != nil)
    try await waitUntilFresh(request)
    #expect(manager.freshnessFigures.failingSources == 0)
  }
}
