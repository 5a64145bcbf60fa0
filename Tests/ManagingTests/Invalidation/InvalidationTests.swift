// InvalidationTests: tests that later requests see no data from before a purge.

import Core
import Glibc
import TestSupport
import Testing

@testable import Managing

final class InvalidationTests: ManagedTests {
  private let url = "http://origin/a.jpg"

  private func scope(_ url: String = "http://origin/a.jpg") throws -> PurgeScope {
    .url(try SourceURL(parsing: url))
  }

  // MARK: Removed entries

  @Test func `a purge removes all variants of a URL from memory and no others`() async throws {
    openAll()
    let other = try request("http://origin/b.jpg")
    for request in [try request(), try request(scale: 0.5), other] {
      _ = try await manager.variant(for: request)
    }
    let varied = try request().forwarding([], variation: "0123")
    _ = try await manager.variant(for: varied)
    let report = try await manager.purge(try scope())
    #expect(report.memory == 3)
    #expect(report.disk == nil, "the disk is still looking")
    #expect(disk.purged.withLock { $0.map(\.scope) } == [try scope()])
    #expect(manager.cachedVariant(for: try request().key) == nil)
    #expect(manager.cachedVariant(for: varied.key) == nil)
    #expect(manager.cachedVariant(for: other.key) != nil)
  }

  @Test func `a purged disk entry that still exists is loaded again from its origin`() async throws
  {
    openAll()
    let request = try request()
    _ = try await manager.variant(for: request)
    disk.atHand.withLock { $0 = [request.key] }
    _ = try await manager.purge(.host(try #require(HostPattern("origin"))))
    #expect(manager.deliveryAtOnce(for: request) == nil)
    #expect(manager.variantOnDisk(for: request.key) { request } == nil)
    let again = try await manager.variant(for: request)
    #expect(again.cacheStatus == .missed(.uriMiss))
    #expect(loader.requests.withLock { $0.last?.validators } == nil)
    #expect(manager.deliveryAtOnce(for: request) != nil, "it is of after the purge")
  }

  @Test func `a purge removes all remembered failures of its URL`() async throws {
    openAll()
    loader.failure.withLock { $0 = .sourceNotFound(status: 404) }
    let requests = [
      try request(), try request().forwarding([], variation: "0123"),
      try request("http://origin/b.jpg"),
    ]
    for request in requests {
      await #expect(throws: ImageError.self) { try await self.manager.variant(for: request) }
    }
    #expect(try await manager.purge(try scope()).failed == 2)
    #expect(manager.failedURLs().map(\.url) == ["http://origin/b.jpg"])
  }

  // MARK: Running work

  @Test func `a running load is delivered to its participants and not stored`() async throws {
    let request = try request()
    let waiting = asking(request)
    try await eventually { [loader] in loader.started.value == 1 }
    _ = try await manager.purge(try scope())
    openAll()
    let delivery = try await waiting.value
    #expect(delivery.cacheStatus == .missed(.uriMiss, stored: false))
    #expect(memory.peek(request.key) == nil)
    let variant = await disk.variant(for: request.key)
    let source = await disk.source(for: request.key.source)
    #expect(variant == nil && source == nil)
    // The next request downloads again.
    _ = try await manager.variant(for: request)
    #expect(loader.started.value == 2)
  }

  @Test func `a request after a purge joins no earlier flight`() async throws {
    let request = try request()
    let before = asking(request)
    try await eventually { [loader] in loader.started.value == 1 }
    _ = try await manager.purge(try scope())
    let after = asking(request)
    try await eventually { [loader] in loader.started.value == 2 }
    let joined = asking(request)
    try await eventually { [manager] in manager.figures.coalesced == 1 }
    openAll()
    let old = try await before.value.variant
    #expect(old.info.generation == 0)
    for task in [after, joined] { #expect(try await task.value.variant.info.generation == 1) }
    #expect(memory.peek(request.key)?.info.generation == 1)
    #expect(loader.started.value == 2)
  }

  @Test func `an earlier load that ends last does not overwrite newer entries`() async throws {
    openAll()
    let (request, refresh) = (try request(), try request { $0.cache = .refresh })
    // The source was replaced before, so its current version is recorded.
    for request in [request, refresh] { _ = try await manager.variant(for: request) }
    let last = Gate()
    loader.gates.withLock { $0 = [3: last] }
    let before = asking(refresh)
    try await eventually { [loader] in loader.started.value == 3 }
    _ = try await manager.purge(try scope())
    let later = asking(request)
    try await eventually { [loader] in loader.started.value == 4 }
    let after = try await later.value.variant
    last.open()
    _ = try await before.value
    #expect(memory.peek(request.key) === after)
    let source = await disk.source(for: request.key.source)
    #expect(source?.version == after.info.sourceVersion)
    // Another size is rendered from the cached source and stored.
    let scaled = try self.request(scale: 0.5)
    #expect(try await manager.variant(for: scaled).cacheStatus == .hit(.source))
    #expect(memory.peek(scaled.key) != nil)
  }

  @Test func `a rendering purged on the way is delivered and not stored`() async throws {
    loader.gate.open()
    let request = try request()
    let waiting = asking(request)
    try await eventually { [processor] in processor.started.value == 1 }
    _ = try await manager.purge(.everything)
    processor.gate.open()
    _ = try await waiting.value
    #expect(memory.peek(request.key) == nil)
    #expect(await disk.variant(for: request.key) == nil)
  }

  @Test func `a purged variant read from disk is not promoted to memory`() async throws {
    openAll()
    let request = try request()
    _ = try await manager.variant(for: request)
    memory.remove(request.key)
    let gate = Gate()
    disk.readGate.withLock { $0 = gate }
    let waiting = asking(request)
    try await eventually { [disk] in disk.reading.value == 1 }
    _ = try await manager.purge(try scope())
    gate.open()
    #expect(try await waiting.value.variant.info.generation == 1)
    #expect(memory.peek(request.key)?.info.generation == 1)
    #expect(loader.started.value == 2)
  }

  @Test func `a load that fails after a purge is reported and not remembered`() async throws {
    let waiting = asking(try request())
    try await eventually { [loader] in loader.started.value == 1 }
    loader.failure.withLock { $0 = .sourceNotFound(status: 404) }
    _ = try await manager.purge(try scope())
    openAll()
    await #expect(throws: ImageError.sourceNotFound(status: 404)) { try await waiting.value }
    #expect(manager.failedURLs().isEmpty)
  }

  @Test func `a rendering that fails after a purge is not remembered`() async throws {
    loader.gate.open()
    let waiting = asking(try request())
    try await eventually { [processor] in processor.started.value == 1 }
    processor.failure.withLock { $0 = .undecodable(detail: "") }
    _ = try await manager.purge(try scope())
    processor.gate.open()
    await #expect(throws: ImageError.undecodable(detail: "")) { try await waiting.value }
    #expect(manager.failedURLs().isEmpty)
  }

  @Test func `a source held since before a purge is not used for a later participant`()
    async throws
  {
    var transform = Transform()
    transform.format = .jpeg
    transform.progressive = true
    let request = ImageRequest(source: try SourceURL(parsing: url), transform: transform)
    let first = Gate()
    loader.gates.withLock { $0 = [1: first] }
    // The request joins the source flight, waits for the head and renders its variant afterwards.
    let holding = Task { [manager] in try await manager.answer(to: request) }
    try await eventually { [loader] in loader.started.value == 1 }
    _ = try await manager.purge(try scope())
    first.open()
    try await eventually { [loader] in loader.started.value == 2 }
    let joined = asking(request)
    try await eventually { [manager] in manager.figures.coalesced > 0 }
    openAll()
    #expect(try await joined.value.variant.info.generation == 1)
    guard case .whole(let delivery) = try await holding.value else {
      return #expect(Bool(false), "it needs work")
    }
    #expect(delivery.variant.info.generation == 1)
    #expect(memory.peek(request.key)?.info.generation == 1)
  }

  @Test func `a purge waits for stores whose check preceded it`()
    async throws
  {
    openAll()
    let (request, scope) = (try request(), try scope())
    let manager = manager
    let purges = purges
    let disk = disk
    let purging = Lock<Task<PurgeReport, any Error>?>(nil)
    memory.beforeStore.withLock { hook in
      // A purge runs between the check and the store.
      hook = {
        purging.withLock {
          $0 = Task(executorPreference: BlockingExecutor.shared) { try await manager.purge(scope) }
        }
        wait(milliseconds: 5_000) { purges.generation == 1 }
        wait(milliseconds: 50) { !disk.purged.withLock { $0.isEmpty } }
      }
    }
    let isOver = Lock(false)
    memory.afterStore.withLock { hook in
      hook = { isOver.withLock { $0 = !disk.purged.withLock { $0.isEmpty } } }
    }
    _ = try await manager.variant(for: request)
    _ = try await purging.withLock { $0 }?.value
    #expect(!isOver.withLock { $0 }, "memory held what was purged, after the purge")
    #expect(memory.peek(request.key) == nil)
  }

  @Test func `what a store evicts is released after it lets purges pass`() async throws {
    openAll()
    let (manager, scope) = (manager, try scope("http://other/"))
    let (purged, released) = (Count(), Count())
    let old = try await manager.variant(for: try request("http://origin/b.jpg")).variant
    memory.evicted.withLock {
      $0 = [Variant(key: old.key, info: old.info, body: old.body)]
      _ = $0[0].prepared.storeIfNil(
        Ending {
          Task(executorPreference: BlockingExecutor.shared) {
            _ = try await manager.purge(scope)
            purged.add()
          }
          wait(milliseconds: 5_000) { purged.value == 1 }
          if purged.value == 1 { released.add() }
        })
    }
    _ = try await manager.variant(for: try request())
    #expect(released.value == 1)
  }

  @Test func `a request during the removal from memory does not get a purged entry`()
    async throws
  {
    openAll()
    let request = try request()
    _ = try await manager.variant(for: request)
    let manager = manager
    let loader = loader
    let asked = Lock<Task<ImageDelivery, any Error>?>(nil)
    let answered = Count()
    memory.beforeRemoval.withLock { hook in
      hook = {
        asked.withLock {
          $0 = Task(executorPreference: BlockingExecutor.shared) {
            defer { answered.add() }
            return try await manager.variant(for: request)
          }
        }
        wait(milliseconds: 5_000) { loader.started.value == 2 || answered.value == 1 }
      }
    }
    _ = try await manager.purge(try scope())
    #expect(try await asked.withLock { $0 }?.value.variant.info.generation == 1)
  }

  @Test func `in 2,000 races of a request and a purge, no purged entry stays in memory`()
    async throws
  {
    openAll()
    let request = try request()
    for _ in 0..<2_000 {
      let asked = asking(request)
      _ = try await manager.purge(try scope())
      let generation = purges.generation
      for _ in 0..<3 {
        if let kept = manager.cachedVariant(for: request.key) {
          #expect(kept.info.generation >= generation)
        }
        await Task.yield()
      }
      _ = try await asked.value
      if let kept = manager.cachedVariant(for: request.key) {
        #expect(kept.info.generation >= generation)
      }
      purges.forget(before: generation)
    }
  }

  // MARK: Clear and look-up

  @Test func `clearing one tier leaves the other`() async throws {
    openAll()
    let request = try request()
    _ = try await manager.variant(for: request)
    #expect(try await manager.clear(.memory).memory == 1)
    #expect(try await manager.variant(for: request).cacheStatus == .hit(.disk))
    #expect(try await manager.clear(.disk).disk == 2)
    #expect(manager.cachedVariant(for: request.key) != nil)
    memory.remove(request.key)
    _ = try await manager.variant(for: request)
    #expect(loader.started.value == 2)
    #expect(purges.generation == 0)
  }

  @Test func `clearing both tiers is a purge of everything`() async throws {
    let waiting = asking(try request())
    try await eventually { [loader] in loader.started.value == 1 }
    _ = try await manager.clear(.all)
    openAll()
    _ = try await waiting.value
    #expect(memory.peek(try request().key) == nil)
    #expect(disk.purged.withLock { $0.map(\.scope) } == [.everything])
  }

  @Test func `a look reports every tier with an entry and no purged ones`() async throws {
    openAll()
    let (request, scaled) = (try request(), try request(scale: 0.5))
    #expect(await manager.look(for: request).isEmpty)
    _ = try await manager.variant(for: request)
    let look = await manager.look(for: request)
    let bytes = try #require(memory.peek(request.key)).body.count
    #expect(look.memory?.bytes == bytes && look.disk?.bytes == bytes && look.source?.bytes == 0)
    #expect(look.memory?.freshness.lifetime == 3_600)
    let source = await manager.look(for: scaled)
    #expect(source.memory == nil && source.disk == nil && source.source != nil)
    _ = try await manager.purge(try scope())
    #expect(await manager.look(for: request).isEmpty)
  }
}

/// Blocks until a condition holds, or for a number of milliseconds.
private func wait(milliseconds: Int, until condition: () -> Bool) {
  for _ in 0..<milliseconds where !condition() { usleep(1_000) }
}
