// WatermarkTests: tests that a watermark is a source of its own, with its own failures.

import Core
import TestSupport
import TestSupport
import Testing

@testable import Managing

final class WatermarkTests: ManagedTests {
  private let mark = "http://marks/logo@2x.png"

  /// Returns a request for an image with the watermark.
  private func marked(
    scale: Double? = nil, _ change: (inout LoadOptions) -> Void = { _ in }
  ) throws -> ImageRequest {
    var request = try wish {
      $0.scale = scale
      $0.watermark = Watermark(source: try SourceURL(parsing: mark))
    }
    change(&request.options)
    return request
  }

  private func failure(of request: ImageRequest) async -> ImageError? {
    do throws(ImageError) {
      _ = try await manager.variant(for: request)
      return nil
    } catch {
      return error
    }
  }

  private func loads(of url: String) -> Int {
    loader.requests.withLock { $0.count { $0.url.text == url } }
  }

  @Test func `a watermark is loaded once for all images, and only when one is rendered`()
    async throws
  {
    openAll()
    // When
    let first = try await manager.variant(for: try marked())
    _ = try await manager.variant(for: try marked(scale: 0.5))
    _ = try await manager.variant(for: try marked(scale: 0.5))
    _ = try await manager.variant(for: try request())
    // Then
    #expect(loads(of: mark) == 1 && loader.started.value == 2)
    #expect(processor.jobs.withLock { $0.map { $0.overlay?.density } } == [2, 2, nil])
    let source = await disk.source(for: CacheKey(source: try SourceURL(parsing: mark)))
    #expect(source != nil && first.variant.info.watermarkVersion == source?.version)
    #expect(first.variant.key.source.text == "http://origin/a.jpg")
  }

  @Test func `ten concurrent sizes load the watermark once`() async throws {
    let requests = try (1...10).map { try marked(scale: Double($0) / 10) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for request in requests {
        group.addTask { [manager] in _ = try? await manager.variant(for: request) }
      }
      try await eventually { [manager] in manager.figures.coalesced == 9 }
      openAll()
    }
    #expect(loads(of: mark) == 1 && processor.started.value == 10)
  }

  @Test func `a missing watermark is not a failure of the image`() async throws {
    // Given: a cached image
    openAll()
    _ = try await manager.variant(for: try request())
    loader.failure.withLock { $0 = .sourceNotFound(status: 404) }
    // When
    let first = await failure(of: try marked())
    let second = await failure(of: try marked())
    // Then
    #expect(first == .watermark(.sourceNotFound(status: 404)) && second == first)
    #expect(loads(of: mark) == 1, "the second failure is remembered")
    #expect(manager.failedURLs().map(\.url) == [mark])
    _ = try await manager.variant(for: try request(scale: 0.5))
  }

  @Test func `an undecodable watermark is remembered as its own failure`() async throws {
    // Given
    openAll()
    processor.failure.withLock { $0 = .watermark(.undecodable(detail: "x")) }
    // When
    let first = await failure(of: try marked())
    let second = await failure(of: try marked(scale: 0.5))
    // Then
    #expect(first == .watermark(.undecodable(detail: "x")) && second == first)
    #expect(processor.started.value == 1)
    #expect(manager.failedURLs().map(\.url) == [mark])
    // And: a request may retry the watermark
    processor.failure.withLock { $0 = nil }
    _ = try await manager.variant(for: try marked { $0.retriesFailed = true })
    #expect(manager.failedURLs().isEmpty)
    _ = try await manager.variant(for: try marked(scale: 0.5))
  }

  @Test
  func `a variant that fails only with a watermark is remembered for that variant only`()
    async throws
  {
    openAll()
    processor.failure.withLock { $0 = .ofVariant(.undecodable(detail: "x")) }
    #expect(await failure(of: try marked())?.cause == .undecodable(detail: "x"))
    processor.failure.withLock { $0 = nil }
    _ = try await manager.variant(for: try request())
    #expect(await failure(of: try marked())?.cause == .undecodable(detail: "x"))
  }

  @Test func `overload and cache-only errors of a watermark are returned unchanged`() async throws {
    openAll()
    _ = try await manager.variant(for: try request())
    let error = ImageError.overloaded(queue: "download", retryAfter: 1)
    loader.failure.withLock { $0 = error }
    #expect(await failure(of: try marked()) == error)
    #expect(await failure(of: try marked { $0.cache = .only }) == .notCached)
  }

  @Test func `the last participant to leave cancels the watermark's load`() async throws {
    // Given
    openAll()
    _ = try await manager.variant(for: try request())
    loader.gate.close()
    let task = asking(try marked())
    try await eventually { [loader] in loader.started.value == 2 }
    // When
    task.cancel()
    // Then
    await #expect(throws: ImageError.cancelled) { try await task.value }
    try await eventually { [loader] in loader.cancelled.value == 1 }
    #expect(processor.started.value == 1)
  }

  @Test func `an image is as fresh as the older of image and watermark`() async throws {
    // Given: a watermark loaded a thousand seconds before the image
    openAll()
    loader.etag.withLock { $0 = "\"v1\"" }
    _ = try await manager.variant(for: try request(mark))
    pass(seconds: 1_000)
    let made = try await manager.variant(for: try marked())
    let expiry = made.variant.info.freshness
    #expect(expiry.receivedAt == UnixTime(seconds: 1_000) && expiry.lifetime == 3_600)
    // When: the watermark is stale and the image is not
    pass(seconds: 2_700)
    let renewed = try await manager.variant(for: try marked())
    // Then: the watermark is revalidated and nothing is rendered
    #expect(loads(of: mark) == 2 && loads(of: "http://origin/a.jpg") == 1)
    #expect(processor.started.value == 2)
    #expect(renewed.variant.info.freshness.receivedAt == UnixTime(seconds: 2_000))
  }

  @Test func `a changed watermark appears when the image is revalidated`() async throws {
    // Given
    openAll()
    loader.etag.withLock { $0 = "\"v1\"" }
    let before = try await manager.variant(for: try marked()).variant.info
    await disk.remove(CacheKey(source: try SourceURL(parsing: mark)))
    // When: the image is fresh, then stale
    let fresh = try await manager.variant(for: try marked()).variant.info
    pass(seconds: 4_000)
    let after = try await manager.variant(for: try marked()).variant.info
    // Then
    #expect(fresh.watermarkVersion == before.watermarkVersion)
    #expect(after.watermarkVersion != before.watermarkVersion)
    #expect(after.sourceVersion == before.sourceVersion && processor.started.value == 2)
  }

  @Test func `a changed watermark defers the AVIF, and an unchanged one renews it`() async throws {
    // Given
    openAll()
    loader.etag.withLock { $0 = "\"v1\"" }
    let gate = Gate()
    processor.avifGate.withLock { $0 = gate }
    gate.open()
    let wish = try marked().accepting([.avif, .webp])
    func waitUntilMade() async throws {
      try await eventually { [manager] in manager.figures.avifsWaiting == 0 }
    }
    _ = try await manager.variant(for: wish)
    try await waitUntilMade()
    // When: both are stale
    pass(seconds: 3_601)
    let renewed = try await manager.variant(for: wish).variant
    // Then
    #expect(processor.started.value == 2 && renewed.info.freshness.lifetime == 3_600)
    // When: another watermark is loaded, and AVIFs take long
    await disk.remove(CacheKey(source: try SourceURL(parsing: mark)))
    pass(seconds: 3_601)
    gate.close()
    let changed = try await manager.variant(for: wish).variant
    // Then
    #expect(changed.info.watermarkVersion != renewed.info.watermarkVersion)
    #expect(changed.info.freshness.lifetime == DeferredAVIF.placeholderLifetime)
    gate.open()
    try await waitUntilMade()
    #expect(processor.started.value == 4)
  }

  @Test func `an image with an unstorable watermark is not stored`() async throws {
    openAll()
    _ = try await manager.variant(for: try request())
    loader.cacheControl.withLock { $0 = "no-store" }
    let made = try await manager.variant(for: try marked())
    #expect(memory.peek(made.variant.key) == nil && !made.variant.info.freshness.isStorable)
  }
}
