// StaleOnErrorTests: tests stale responses when the origin fails (RFC 5861, section 4).

import Core
import TestSupport
import TestSupport
import Testing

@testable import Managing

final class StaleOnErrorTests: StaleTests {
  @Test(arguments: [
    ImageError.sourceUnreachable(detail: ""), .sourceTimeout(detail: ""), .sourceTLS(detail: ""),
    .sourceIncomplete(detail: ""), .sourceError(status: 500), .sourceError(status: 429),
    .overloaded(queue: "download", retryAfter: 1),
  ])
  func `when the origin fails, a stale image is served`(_ error: ImageError) async throws {
    try await makeStale(ifError: 100)
    fail(error)
    let request = try request()
    #expect(manager.deliveryAtOnce(for: request) == nil)
    let status: Int? = if case .sourceError(let status, _, _) = error { status } else { nil }
    #expect(
      try await manager.variant(for: request).cacheStatus
        == .staleIfError(collapsed: false, originStatus: status))
    #expect(processor.started.value == 1)
    #expect(manager.freshnessFigures.staleIfError == 1)
    #expect(manager.freshnessFigures.failingSources == 1)
  }

  @Test func `when the origin fails, another size is rendered from the stale source`() async throws
  {
    try await makeStale(ifError: 100)
    fail(.sourceError(status: 503))
    let other = try request(scale: 0.5)
    #expect(
      try await manager.variant(for: other).cacheStatus
        == .staleIfError(collapsed: false, originStatus: 503))
    // The stale variant is stored, so the next request is answered at once.
    #expect(
      manager.deliveryAtOnce(for: other)?.cacheStatus == .staleHit(.memory, .ifError, ttl: -5))
    #expect(processor.started.value == 2)
  }

  @Test func `when the origin fails, a request for streaming gets the stale image`() async throws {
    try await makeStale(ifError: 100)
    fail(.sourceError(status: 503))
    let request = try wish {
      $0.format = .jpeg
      $0.progressive = true
    }
    guard case .whole(let answer) = try await manager.answer(to: request) else {
      return _ = Issue.record("nothing comes in")
    }
    #expect(answer.cacheStatus == .staleIfError(collapsed: false, originStatus: 503))
    #expect(loader.started.value == 2)
  }

  @Test func `when the origin fails, a stale variant is served without a cached source`()
    async throws
  {
    try await makeStale(ifError: 100)
    let request = try request()
    await disk.remove(request.key.source)
    fail(.sourceUnreachable(detail: ""))
    #expect(
      try await manager.variant(for: request).cacheStatus
        == .staleIfError(collapsed: false, originStatus: nil))
    #expect(manager.deliveryAtOnce(for: request) != nil)
  }

  @Test func `after a failure the origin is not asked during the back-off, then in the background`()
    async throws
  {
    // Given
    try await makeStale(ifError: 1_000)
    fail(.sourceError(status: 503, retryAfter: 30))
    let request = try request()
    _ = try await manager.variant(for: request)
    // When
    pass(seconds: 29)
    for _ in 0..<3 {
      #expect(
        manager.deliveryAtOnce(for: request)?.cacheStatus == .staleHit(.memory, .ifError, ttl: -34))
    }
    // Then
    #expect(loader.started.value == 2)
    // When
    pass(seconds: 1)
    fail(nil)
    #expect(manager.deliveryAtOnce(for: request) != nil)
    // Then
    try await waitUntilFresh(request)
    #expect(loader.started.value == 3)
    #expect(manager.freshnessFigures.staleIfError == 5)
  }

  @Test func `after the failure window the next request waits for the origin`() async throws {
    try await makeStale(ifError: 1_000)
    fail(.sourceError(status: 503))
    let request = try request()
    _ = try await manager.variant(for: request)
    pass(seconds: 70)
    fail(nil)
    #expect(manager.deliveryAtOnce(for: request) == nil)
    #expect(try await manager.variant(for: request).cacheStatus == .missed(.stale, status: 304))
  }

  @Test func `a request that requires the origin gets its error`() async throws {
    try await makeStale(ifError: 100)
    let error = ImageError.sourceError(status: 503)
    fail(error)
    for use in [CacheUse.refresh, .bypass] {
      let request = try request { $0.cache = use }
      await #expect(throws: error) { try await self.manager.variant(for: request) }
    }
    let aged = try request { $0.age.maxAge = 0 }
    #expect(
      try await manager.variant(for: aged).cacheStatus
        == .staleIfError(collapsed: false, originStatus: 503))
  }

  @Test func `an entry past its stale-if-error time is not served`() async throws {
    try await makeStale(ifError: 5)
    let error = ImageError.sourceUnreachable(detail: "")
    fail(error)
    let request = try request()
    await #expect(throws: error) { try await self.manager.variant(for: request) }
  }

  @Test func `an origin error that is not a server failure is returned`() async throws {
    try await makeStale(ifError: 100)
    fail(.sourceError(status: 403))
    let request = try request()
    await #expect(throws: ImageError.sourceError(status: 403)) {
      try await self.manager.variant(for: request)
    }
    // The cached entries still exist.
    fail(nil)
    #expect(try await manager.variant(for: request).cacheStatus == .missed(.stale, status: 304))
    #expect(processor.started.value == 1)
  }

  @Test func `a revalidation that finds the image gone removes it`() async throws {
    try await makeStale(whileRevalidate: 10, ifError: 100, [nil, 0.5])
    fail(.sourceNotFound(status: 404))
    let request = try request()
    #expect(manager.deliveryAtOnce(for: request) != nil)
    try await eventually { [manager] in manager.freshnessFigures.revalidationsFailed == 1 }
    for scale in [nil, 0.5] {
      let request = try self.request(scale: scale)
      #expect(manager.deliveryAtOnce(for: request) == nil)
      await #expect(
        throws: ImageError.remembered(
          .sourceNotFound(status: 404), seconds: 600, isRepeated: true)
      ) { try await self.manager.variant(for: request) }
    }
    #expect(await disk.variant(for: request.key) == nil)
    // The image is back and is downloaded like a new one.
    fail(nil)
    pass(seconds: 600)
    #expect(try await manager.variant(for: request).cacheStatus == .missed(.uriMiss))
  }

  @Test func `purged entries are not served on errors`() async throws {
    try await makeStale(ifError: 100)
    let request = try request()
    loader.gate.close()
    let waiting = asking(request)
    try await eventually { [loader] in loader.started.value == 2 }
    _ = purges.add(.everything)
    fail(.sourceError(status: 503))
    loader.gate.open()
    await #expect(throws: ImageError.sourceError(status: 503)) { try await waiting.value }
  }

  @Test func `after a clock set back the origin is asked, and its failure serves the cached entry`()
    async throws
  {
    try await makeStale(ifError: 100)
    let request = try request()
    pass(seconds: -3_605 - 61)
    fail(.sourceTimeout(detail: ""))
    #expect(
      try await manager.variant(for: request).cacheStatus
        == .staleIfError(collapsed: false, originStatus: nil))
    #expect(manager.freshnessFigures.clockSetBack == 1)
  }
}
