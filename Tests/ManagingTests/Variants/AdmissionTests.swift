// AdmissionTests: which requests make the disk tier store a variant that it deferred.

import Core
import TestSupport
import Testing

@testable import Managing

final class AdmissionTests: ManagedTests {
  /// Returns a request of a client that chose the parameters.
  private func freeForm(
    scale: Double? = nil, change: (inout LoadOptions) -> Void = { _ in }
  ) throws -> ImageRequest {
    try request(scale: scale) {
      $0.isFreeForm = true
      change(&$0)
    }
  }

  private func isOnDisk(_ request: ImageRequest) async -> Bool {
    await disk.variant(for: request.key) != nil
  }

  private var demands: [VariantDemand] { disk.demands.withLock { $0 } }

  init() {
    super.init()
    disk.defersFirst.withLock { $0 = true }
  }

  @Test func `the first hit in memory stores a deferred variant on disk, and no later one does`()
    async throws
  {
    openAll()
    let request = try freeForm()
    let made = try await manager.variant(for: request)
    #expect(made.cacheStatus == .missed(.uriMiss))
    #expect(await !isOnDisk(request))
    #expect(await disk.source(for: request.key.source) != nil, "sources are stored at once")
    for _ in 0..<3 { #expect(manager.cachedVariant(for: request.key) === made.variant) }
    #expect(await isOnDisk(request))
    #expect(demands == [.repeated])
  }

  @Test func `a stale hit in memory is a second request, too`() async throws {
    openAll()
    freshness.staleWhileRevalidate.withLock { $0 = 1_000 }
    let request = try freeForm()
    _ = try await manager.variant(for: request)
    pass(seconds: 3_700)
    #expect(manager.cachedVariant(for: request.key) == nil)
    #expect(manager.deliveryAtOnce(for: request) != nil)
    #expect(demands.first == .repeated)
  }

  @Test func `a variant that is renewed or rendered again was asked for before`() async throws {
    openAll()
    loader.etag.withLock { $0 = "\"1\"" }
    let request = try freeForm()
    _ = try await manager.variant(for: request)
    pass(seconds: 4_000)
    // The origin answers 304.
    _ = try await manager.variant(for: request)
    #expect(demands == [.repeated])
    pass(seconds: 4_000)
    // The source has changed.
    loader.etag.withLock { $0 = "\"2\"" }
    _ = try await manager.variant(for: request)
    #expect(demands == [.repeated, .repeated])
  }

  @Test func `a variant that memory has evicted is offered to the disk tier as a first one again`()
    async throws
  {
    openAll()
    let request = try freeForm()
    _ = try await manager.variant(for: request)
    memory.remove(request.key)
    disk.defersFirst.withLock { $0 = false }
    _ = try await manager.variant(for: request)
    #expect(demands == [.first], "the tier knows its key")
  }

  /// Requests an image twice, in this order, and returns when both wait for one flight.
  private func sharing(
    _ first: ImageRequest, _ second: ImageRequest
  ) async throws -> [Task<ImageDelivery, any Error>] {
    let starter = asking(first)
    try await eventually { [loader] in loader.started.value == 1 }
    let joiner = asking(second)
    try await eventually { [manager] in manager.figures.coalesced == 1 }
    return [starter, joiner]
  }

  @Test(arguments: [(true, true), (true, false), (false, true)])
  func `requests that share a flight count one by one, and a vouched one stores the variant`(
    isFirstFree: Bool, isSecondFree: Bool
  ) async throws {
    // Given two requests that wait for one source
    let free = try freeForm()
    let vouched = try request()
    let tasks = try await sharing(isFirstFree ? free : vouched, isSecondFree ? free : vouched)
    #expect(demands.isEmpty)
    // When
    openAll()
    let made = [try await tasks[0].value.variant, try await tasks[1].value.variant]
    // Then both got one rendering, and it was stored once: for the vouched one or the second one.
    #expect(made[0] === made[1])
    #expect(processor.started.value == 1)
    #expect(await isOnDisk(free))
    #expect(demands == [isFirstFree && isSecondFree ? .repeated : .vouched])
  }

  @Test func `a request that leaves its flight does not count`() async throws {
    let tasks = try await sharing(try freeForm(), try request())
    tasks[1].cancel()
    _ = await tasks[1].result
    openAll()
    _ = try await tasks[0].value
    #expect(demands.isEmpty)
  }

  @Test func `a vouched request stores the variant at once`() async throws {
    openAll()
    _ = try await manager.variant(for: try request())
    #expect(demands == [.vouched])
    #expect(manager.cachedVariant(for: try request().key)?.isDeferred == false)
  }

  @Test func `a prefetch that finds a deferred variant in memory stores it`() async throws {
    openAll()
    _ = try await manager.variant(for: try freeForm())
    let prefetched = try request()
    let prefetcher = Prefetcher(provider: manager)
    let line = PrefetchLine(number: 1, request: .success(prefetched))
    let status = try await end(of: try prefetcher.prefetch([line]), in: prefetcher)
    #expect(status.skipped == 1)
    #expect(await isOnDisk(prefetched))
  }

  @Test func `store=memory keeps a variant from disk at any request`() async throws {
    openAll()
    let request = try freeForm { $0.store = .memory }
    _ = try await manager.variant(for: request)
    for _ in 0..<3 { #expect(manager.cachedVariant(for: request.key) != nil) }
    #expect(demands.isEmpty)
  }

  @Test func `a purged variant is not stored by a late hit`() async throws {
    openAll()
    let request = try freeForm()
    let made = try await manager.variant(for: request).variant
    _ = try await manager.purge(.url(request.source))
    // The hit began before the purge, and its variant is back in memory.
    _ = memory.store(made)
    _ = manager.cachedVariant(for: request.key)
    #expect(demands.isEmpty)
  }

  @Test func `an AVIF in the background is as free-form as its request`() async throws {
    openAll()
    let request = try freeForm().accepting([.avif, .webp])
    _ = try await manager.variant(for: request)
    try await eventually { [memory] in memory.variant(for: request.key) != nil }
    #expect(await !isOnDisk(request))
    #expect(manager.cachedVariant(for: request.key) != nil)
    #expect(await isOnDisk(request))
  }
}
