// ImageManagerTests: tests look-up order, coalescing, cancellation and freshness.

import Core
import TestSupport
import Testing

@testable import Managing

final class ImageManagerTests: ManagedTests {
  @Test func `the first request loads, renders and stores an image in both tiers`()
    async throws
  {
    openAll()
    let request = try request()
    let delivery = try await manager.variant(for: request)
    #expect(delivery.cacheStatus == .missed(.uriMiss))
    #expect(delivery.variant.info.etag == "\"d1\"")
    #expect(memory.variant(for: request.key) === delivery.variant)
    #expect(await disk.variant(for: request.key) === delivery.variant)
    #expect(await disk.source(for: request.key.source) != nil)
  }

  @Test(arguments: [
    ("Sunday, 06-Nov-94 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT"), ("yesterday", nil),
  ])
  func `an origin's date is forwarded in canonical form, and an invalid one is dropped`(
    sent: String, passedOn: String?
  ) async throws {
    openAll()
    loader.lastModified.withLock { $0 = sent }
    let delivery = try await manager.variant(for: try request())
    #expect(delivery.variant.info.lastModified.map(HTTPDate.text) == passedOn)
  }

  @Test func `a fresh disk entry is served without blocking and promoted to memory`()
    async throws
  {
    openAll()
    let request = try request()
    let made = try await manager.variant(for: request)
    memory.remove(request.key)
    #expect(manager.deliveryAtOnce(for: request) == nil, "the disk would have to be waited for")
    disk.atHand.withLock { $0 = [request.key] }
    let delivery = try #require(manager.deliveryAtOnce(for: request))
    #expect(delivery.variant === made.variant)
    #expect(delivery.cacheStatus == .hit(.disk))
    #expect(delivery.timings.disk != nil)
    #expect(memory.variant(for: request.key) != nil)
    clock.advance(by: 1_000_000)
    #expect(manager.deliveryAtOnce(for: request) == nil, "it is too old")
  }

  @Test func `a hit in memory needs no load and no rendering`() async throws {
    openAll()
    let request = try request()
    let first = try await manager.variant(for: request)
    #expect(manager.cachedVariant(for: request.key) === first.variant)
    let second = try await manager.variant(for: request)
    #expect(second.cacheStatus == .hit(.memory))
    #expect(loader.started.value == 1)
    #expect(processor.started.value == 1)
  }

  @Test func `a variant on disk is promoted to memory`() async throws {
    openAll()
    let request = try request()
    _ = try await manager.variant(for: request)
    memory.remove(request.key)
    let second = try await manager.variant(for: request)
    #expect(second.cacheStatus == .hit(.disk))
    #expect(memory.variant(for: request.key) != nil)
    #expect(processor.started.value == 1)
  }

  @Test func `another size is rendered from the source on disk`() async throws {
    openAll()
    _ = try await manager.variant(for: try request())
    let second = try await manager.variant(for: try request(scale: 0.5))
    #expect(second.cacheStatus == .hit(.source))
    #expect(loader.started.value == 1)
    #expect(processor.started.value == 2)
  }

  @Test func `a thousand concurrent requests cause one download and one rendering`() async throws {
    let request = try request()
    let statuses = try await withThrowingTaskGroup(of: CacheStatus?.self) { group in
      for _ in 0..<1_000 {
        group.addTask { [manager] in try? await manager.variant(for: request).cacheStatus }
      }
      // Given: a thousand requests wait for one variant flight, which waits for its source flight
      try await eventually { [manager] in manager.figures.waiting == 1_001 }
      openAll()
      return try await group.reduce(into: [CacheStatus?]()) { $0.append($1) }
    }
    #expect(loader.started.value == 1)
    #expect(processor.started.value == 1)
    #expect(statuses.allSatisfy { $0 != nil })
    let alone = CacheStatus.missed(.uriMiss)
    #expect(statuses.count { $0 == alone } == 1)
    #expect(manager.figures.coalesced == 999)
  }

  @Test func `ten concurrent sizes of one URL cause one download`() async throws {
    let requests = try (1...10).map { try request(scale: Double($0) / 10) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for request in requests {
        group.addTask { [manager] in _ = try? await manager.variant(for: request) }
      }
      try await eventually { [manager] in manager.figures.coalesced == 9 }
      openAll()
    }
    #expect(loader.started.value == 1)
    #expect(processor.started.value == 10)
  }

  @Test func `a client that disconnects ends only its own participation`() async throws {
    let request = try request()
    let stays = asking(request)
    let goes = asking(request)
    try await eventually { [manager] in manager.figures.coalesced == 1 }
    goes.cancel()
    await #expect(throws: ImageError.cancelled) { try await goes.value }
    openAll()
    _ = try await stays.value
    #expect(loader.cancelled.value == 0)
  }

  @Test func `the last client to disconnect cancels the download`() async throws {
    let request = try request()
    let tasks = (0..<3).map { _ in asking(request) }
    try await eventually { [manager] in manager.figures.coalesced == 2 }
    try await eventually { [loader] in loader.started.value == 1 }
    for task in tasks { task.cancel() }
    try await eventually { [loader] in loader.cancelled.value == 1 }
    for task in tasks { await #expect(throws: ImageError.cancelled) { try await task.value } }
    try await eventually { [manager] in manager.figures.sources == 0 }
  }

  @Test func `a download continues while another size needs it`() async throws {
    let small = try request(scale: 0.5)
    let large = try request(scale: 2)
    let stays = asking(small)
    let goes = asking(large)
    try await eventually { [manager] in manager.figures.coalesced == 1 }
    goes.cancel()
    await #expect(throws: ImageError.cancelled) { try await goes.value }
    openAll()
    _ = try await stays.value
    #expect(loader.started.value == 1)
    #expect(loader.cancelled.value == 0)
  }

  @Test func `a request after a cancellation starts a new download`() async throws {
    let request = try request()
    let first = asking(request)
    try await eventually { [loader] in loader.started.value == 1 }
    first.cancel()
    await #expect(throws: ImageError.cancelled) { try await first.value }
    let second = asking(request)
    try await eventually { [loader] in loader.started.value == 2 }
    openAll()
    _ = try await second.value
  }

  @Test func `a request cancelled before it begins leaves no flight`()
    async throws
  {
    let request = try request()
    let task = Task { [manager] in
      withUnsafeCurrentTask { $0?.cancel() }
      return try await manager.variant(for: request)
    }
    await #expect(throws: ImageError.cancelled) { try await task.value }
    try await eventually { [manager] in manager.figures.variants + manager.figures.sources == 0 }
  }

  @Test func `a transient failure reaches every waiting request and is not remembered`()
    async throws
  {
    let request = try request()
    loader.failure.withLock { $0 = .sourceError(status: 500) }
    let tasks = (0..<3).map { _ in asking(request) }
    try await eventually { [manager] in manager.figures.coalesced == 2 }
    openAll()
    for task in tasks {
      await #expect(throws: ImageError.sourceError(status: 500)) { try await task.value }
    }
    loader.failure.withLock { $0 = nil }
    _ = try await manager.variant(for: request)
  }

  @Test func `an expired entry is loaded again`() async throws {
    openAll()
    let request = try request()
    _ = try await manager.variant(for: request)
    clock.advance(by: 3_600)
    #expect(manager.cachedVariant(for: request.key) == nil)
    let again = try await manager.variant(for: request)
    #expect(again.cacheStatus == .missed(.stale))
    #expect(loader.started.value == 2)
    #expect(manager.cachedVariant(for: request.key) === again.variant)
  }

  @Test func `an unstorable image is served and not stored`() async throws {
    openAll()
    loader.cacheControl.withLock { $0 = "no-store" }
    let request = try request()
    let delivery = try await manager.variant(for: request)
    #expect(delivery.cacheStatus == .missed(.uriMiss, stored: false))
    #expect(memory.variant(for: request.key) == nil)
    #expect(await disk.variant(for: request.key) == nil)
    #expect(await disk.source(for: request.key.source) == nil)
  }

  @Test func `a local file is read in place and not copied to disk`() async throws {
    openAll()
    let request = try request("local:///a.jpg")
    let delivery = try await manager.variant(for: request)
    #expect(delivery.cacheStatus == .missed(.uriMiss, status: nil))
    #expect(await disk.source(for: request.key.source) == nil)
    #expect(await disk.variant(for: request.key) != nil)
  }
}
