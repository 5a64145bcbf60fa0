// LoadOptionsTests: tests the load options: cache use, storage tiers, priority and detachment.

import Core
import TestSupport
import Testing

@testable import Managing

final class LoadOptionsTests: ManagedTests {
  // MARK: Cache use

  @Test func `a cache-only request never asks the origin`() async throws {
    openAll()
    let only = try request { $0.cache = .only }
    await #expect(throws: ImageError.notCached) { try await self.manager.variant(for: only) }
    #expect(loader.started.value == 0)
    _ = try await manager.variant(for: try request(scale: 0.5))
    // The source is cached, so another size can be rendered.
    #expect(try await manager.variant(for: only).cacheStatus == .hit(.source))
  }

  @Test func `a bypass loads despite cached entries and stores the result`() async throws {
    openAll()
    let first = try await manager.variant(for: try request())
    let again = try await manager.variant(for: try request { $0.cache = .bypass })
    #expect(again.cacheStatus == .missed(.request))
    #expect(loader.requests.withLock { $0.map(\.validators) } == [nil, nil])
    #expect(again.variant !== first.variant)
    #expect(memory.variant(for: again.variant.key) === again.variant)
  }

  @Test func `a refresh that finds the source unchanged keeps source and variants`() async throws {
    openAll()
    loader.etag.withLock { $0 = "\"v1\"" }
    _ = try await manager.variant(for: try request())
    pass(seconds: 1_000)
    let again = try await manager.variant(for: try request { $0.cache = .refresh })
    #expect(again.cacheStatus == .missed(.request, status: 304))
    #expect(loader.requests.withLock { $0.last?.validators?.etag } == "\"v1\"")
    #expect(processor.started.value == 1, "nothing is made anew")
    #expect(again.variant.info.freshness.receivedAt == UnixTime(seconds: 2_000))
    #expect(manager.cachedVariant(for: again.variant.key) === again.variant)
  }

  @Test func `a refresh with changed bytes replaces the source and every variant of it`()
    async throws
  {
    openAll()
    loader.etag.withLock { $0 = "\"v1\"" }
    let small = try request(scale: 0.5)
    _ = try await manager.variant(for: small)
    _ = try await manager.variant(for: try request())
    loader.etag.withLock { $0 = "\"v2\"" }
    _ = try await manager.variant(for: try request { $0.cache = .refresh })
    #expect(processor.started.value == 3)
    #expect(memory.variant(for: small.key) == nil)
    #expect(await disk.variant(for: small.key) == nil)
    #expect(try await manager.variant(for: small).cacheStatus == .hit(.source))
  }

  @Test func `a variant of a source replaced meanwhile is served and not stored`()
    async throws
  {
    loader.gate.open()
    loader.etag.withLock { $0 = "\"v1\"" }
    let small = try request(scale: 0.5)
    let late = asking(small)
    try await eventually { [processor] in processor.started.value == 1 }
    // The source changes while a variant of the old one is being rendered.
    loader.etag.withLock { $0 = "\"v2\"" }
    let refresh = try request { $0.cache = .refresh }
    let refreshed = asking(refresh)
    try await eventually { [processor] in processor.started.value == 2 }
    processor.gate.open()
    let (old, new) = try await (late.value, refreshed.value)
    #expect(old.variant.info.sourceVersion != new.variant.info.sourceVersion)
    #expect(memory.variant(for: small.key) == nil)
    // A late write of the old variant to disk is not served.
    _ = disk.store(old.variant)
    disk.atHand.withLock { $0 = [small.key] }
    #expect(manager.deliveryAtOnce(for: small) == nil)
    #expect(manager.variantOnDisk(for: small.key) { small } == nil)
    let again = try await manager.variant(for: small)
    #expect(again.variant.info.sourceVersion == new.variant.info.sourceVersion)
    #expect(again.cacheStatus == .hit(.source))
  }

  @Test func `a changed source that may not be stored removes the old one`() async throws {
    openAll()
    loader.etag.withLock { $0 = "\"v1\"" }
    let request = try request()
    _ = try await manager.variant(for: request)
    loader.etag.withLock { $0 = "\"v2\"" }
    _ = try await manager.variant(
      for: try self.request {
        $0.cache = .refresh
        $0.store = []
      })
    #expect(await disk.source(for: request.key.source) == nil)
    let again = try await manager.variant(for: request)
    #expect(again.cacheStatus == .missed(.uriMiss))
  }

  @Test func `an expired entry is revalidated with its validators`() async throws {
    openAll()
    loader.etag.withLock { $0 = "\"v1\"" }
    let request = try request()
    _ = try await manager.variant(for: request)
    pass(seconds: 3_600)
    let again = try await manager.variant(for: request)
    #expect(again.cacheStatus == .missed(.stale, status: 304))
    #expect(processor.started.value == 1)
  }

  @Test func `a variant of an older source is not renewed by a newer one`() async throws {
    openAll()
    loader.etag.withLock { $0 = "\"v1\"" }
    let request = try request()
    let first = try await manager.variant(for: request)
    _ = try await manager.variant(
      for: try self.request {
        $0.cache = .refresh; $0.store = []
      })
    loader.etag.withLock { $0 = "\"v2\"" }
    pass(seconds: 3_600)
    _ = try await manager.variant(for: try self.request(scale: 0.5))
    // A variant of the first bytes reappears, as after a late write.
    _ = disk.store(first.variant)
    _ = try await manager.variant(for: request)
    #expect(processor.started.value == 3)
  }

  @Test func `max-age, min-fresh and max-stale of a request are respected`() async throws {
    openAll()
    _ = try await manager.variant(for: try request())
    pass(seconds: 3_000)
    func status(_ change: (inout AgeDemands) -> Void) async throws -> CacheStatus {
      let request = try request { change(&$0.age) }
      return try await manager.variant(for: request).cacheStatus
    }
    #expect(try await status { $0.maxAge = 3_000 } == .hit(.memory))
    #expect(try await status { $0.minFresh = 600 } == .hit(.memory))
    pass(seconds: 700)
    #expect(
      try await status { $0.maxStale = 100 } == .staleHit(.memory, .accepted, ttl: -100))
    #expect(try await status { $0.maxStale = 99 } == .missed(.request))
    pass(seconds: 11)
    #expect(try await status { $0.maxAge = 10 } == .missed(.request))
  }

  // MARK: Storage tiers

  @Test(arguments: [StoreTiers.memory, .disk, [], .all])
  func `a response is stored in the tiers that the request names`(tiers: StoreTiers) async throws {
    openAll()
    let request = try request { $0.store = tiers }
    _ = try await manager.variant(for: request)
    #expect((memory.variant(for: request.key) != nil) == tiers.contains(.memory))
    let onDisk = await disk.variant(for: request.key)
    #expect((onDisk != nil) == tiers.contains(.disk))
    let source = await disk.source(for: request.key.source)
    #expect((source != nil) == tiers.contains(.disk))
  }

  // MARK: Flights

  @Test(arguments: [StoreTiers.memory, .disk])
  func `storing in one tier removes outdated variants from the other`(
    tiers: StoreTiers
  ) async throws {
    openAll()
    // Given an image in one tier, and its replaced source.
    let asked = try request(scale: 0.5) { $0.store = StoreTiers.all.subtracting(tiers) }
    _ = try await manager.variant(for: asked)
    await disk.remove(asked.key.source)
    loader.etag.withLock { $0 = "\"new\"" }
    _ = try await manager.variant(for: try request(scale: 0.25))
    // When it is rendered from the new source for the other tier.
    let renewed = try request(scale: 0.5) {
      $0.cache = .refresh
      $0.store = tiers
    }
    let delivery = try await manager.variant(for: renewed)
    #expect(delivery.cacheStatus.headerValue.contains("fwd-status=304"))
    // Then the older variant is gone.
    let version = delivery.variant.info.sourceVersion
    #expect((memory.peek(asked.key)?.info.sourceVersion ?? version) == version)
    #expect((await disk.variant(for: asked.key)?.info.sourceVersion ?? version) == version)
  }

  @Test func `requests with different cache use share no flight`() async throws {
    let normal = try request()
    let refresh = try request { $0.cache = .refresh }
    let tasks = [normal, refresh].map { asking($0) }
    try await eventually { [loader] in loader.started.value == 2 }
    openAll()
    for task in tasks { _ = try await task.value }
  }

  @Test func `requests with different demands that all need the origin share one load`()
    async throws
  {
    var requests = try (1...3).map { age in try request { $0.age.maxAge = age } }
    requests += try [StoreTiers.all, .memory, .disk, []].map { tiers in
      try request {
        $0.age.minFresh = 9
        $0.store = tiers
      }
    }
    let tasks = requests.map { asking($0) }
    try await eventually { [manager] in manager.figures.variants == 7 }
    openAll()
    for task in tasks { _ = try await task.value }
    #expect(loader.started.value == 1)
    let key = requests[0].key
    let (source, variant) = await (disk.source(for: key.source), disk.variant(for: key))
    #expect(source != nil && variant != nil)
  }

  @Test func `a source too old for a later participant is loaded again`()
    async throws
  {
    openAll()
    _ = try await manager.variant(for: try request(scale: 0.1))
    pass(seconds: 100)
    var statuses: [CacheStatus] = []
    for age in [200, 50] {
      let request = try request(scale: 0.2) { $0.age.maxAge = age }
      statuses.append(try await manager.variant(for: request).cacheStatus)
    }
    #expect(statuses[0] == .hit(.source))
    #expect(statuses[1] == .missed(.request))
  }

  @Test func `a participant raises the priority of a flight and never lowers it`() async throws {
    let requests = try [LoadPriority.low, .high, .normal].map { priority in
      try request { $0.priority = priority }
    }
    let tasks = requests.map { asking($0) }
    try await eventually { [manager] in manager.figures.coalesced == 2 }
    try await eventually { [loader] in loader.started.value == 1 }
    let priority = try #require(loader.requests.withLock { $0.first?.priority })
    try await eventually { priority.observe { _ in } == .high }
    #expect(priority.waiters == 3)
    // A variant flight of another size waits for the same source flight.
    let other = try request(scale: 0.5)
    let fourth = asking(other)
    try await eventually { priority.waiters == 4 }
    tasks[1].cancel()
    try await eventually { priority.waiters == 3 }
    #expect(priority.observe { _ in } == .high, "what was raised stays raised")
    openAll()
    _ = try await (tasks[0].value, tasks[2].value, fourth.value)
  }

  @Test func `a detached load continues after its client disconnects`() async throws {
    let request = try request { $0.isDetached = true }
    let task = asking(request)
    try await eventually { [loader] in loader.started.value == 1 }
    task.cancel()
    await #expect(throws: ImageError.cancelled) { try await task.value }
    openAll()
    try await eventually { [memory] in memory.variant(for: request.key) != nil }
    #expect(loader.cancelled.value == 0)
  }

  @Test func `an operator's cancellation ends every flight and its participants`() async throws {
    let requests = try (0..<5).map { try request("http://origin/\($0 % 3).jpg") }
    let tasks = requests.map { asking($0) }
    try await eventually { [loader] in loader.started.value == 3 }
    try await eventually { [manager] in manager.figures.waiting == 8 }
    #expect(manager.cancelAll() == 5)
    for task in tasks { await #expect(throws: ImageError.revoked) { try await task.value } }
    try await eventually { [loader] in loader.cancelled.value == 3 }
    #expect(manager.figures.variants + manager.figures.sources == 0)
    // No flight remains that could block a new request.
    openAll()
    _ = try await manager.variant(for: requests[0])
  }
}
