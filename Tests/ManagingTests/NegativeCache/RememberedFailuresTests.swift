// RememberedFailuresTests: which failures the manager remembers, and to which requests they apply.

import Core
import TestSupport
import Testing

@testable import Managing

final class RememberedFailuresTests: ManagedTests {
  @Test func `a remembered failure is returned without asking the origin`() async throws {
    openAll()
    loader.failure.withLock { $0 = .sourceNotFound(status: 404) }
    let first = try request(scale: 0.5)
    let other = try request(scale: 0.25)
    await #expect(
      throws: ImageError.remembered(
        .sourceNotFound(status: 404), seconds: 600, isRepeated: false)
    ) { try await self.manager.variant(for: first) }
    pass(seconds: 10)
    await #expect(
      throws: ImageError.remembered(.sourceNotFound(status: 404), seconds: 590, isRepeated: true)
    ) { try await self.manager.variant(for: other) }
    #expect(loader.started.value == 1)
    #expect(manager.figures.failedURLs == 1)
    pass(seconds: 590)
    loader.failure.withLock { $0 = nil }
    _ = try await manager.variant(for: first)
  }

  @Test func `a local file that was not there is looked for again at once`() async throws {
    openAll()
    loader.failure.withLock { $0 = .sourceNotFound(status: 404) }
    let request = try request("local:///a.jpg", scale: 0.5)
    await #expect(throws: ImageError.sourceNotFound(status: 404)) {
      try await self.manager.variant(for: request)
    }
    loader.failure.withLock { $0 = nil }
    _ = try await manager.variant(for: request)
  }

  @Test func `retry loads again, and success removes the failure`() async throws {
    openAll()
    loader.failure.withLock { $0 = .sourceNotFound(status: 404) }
    let request = try request()
    _ = try? await manager.variant(for: request)
    loader.failure.withLock { $0 = nil }
    _ = try await manager.variant(for: try self.request { $0.retriesFailed = true })
    #expect(manager.failedURLs().isEmpty)
    // The image is stored for requests without the option.
    #expect(try await manager.variant(for: request).cacheStatus == .hit(.memory))
  }

  @Test func `a retry that fails again keeps the failure`() async throws {
    openAll()
    loader.failure.withLock { $0 = .sourceNotFound(status: 410) }
    _ = try? await manager.variant(for: try request())
    _ = try? await manager.variant(for: try request { $0.retriesFailed = true })
    #expect(loader.started.value == 2)
    #expect(manager.failedURLs().map(\.status) == [404])
  }

  @Test(arguments: [CacheUse.refresh, .bypass])
  func `a source that is gone removes its variants`(_ use: CacheUse) async throws {
    openAll()
    _ = try await manager.variant(for: try request(scale: 0.5))
    loader.failure.withLock { $0 = .sourceNotFound(status: 410) }
    _ = try? await manager.variant(for: try request(scale: 0.25) { $0.cache = use })
    #expect(manager.failedURLs().count == 1)
    for scale in [0.5, 0.25] {
      let request = try request(scale: scale)
      #expect(manager.cachedVariant(for: request.key) == nil)
      await #expect(
        throws: ImageError.remembered(
          .sourceNotFound(status: 410), seconds: 86_400, isRepeated: true)
      ) { try await self.manager.variant(for: request) }
    }
    #expect(await disk.source(for: try request().key.source) == nil)
  }

  @Test func `a remembered variant failure is returned although the source is gone`()
    async throws
  {
    openAll()
    let frame = try wish { $0.frame = 9 }
    _ = try await manager.variant(for: try request())
    processor.failure.withLock { $0 = .ofVariant(.undecodable(detail: "that frame")) }
    _ = try? await manager.variant(for: frame)
    loader.failure.withLock { $0 = .sourceNotFound(status: 404) }
    _ = try? await manager.variant(for: try request { $0.cache = .bypass })
    let started = processor.started.value
    await #expect(
      throws: ImageError.remembered(
        .ofVariant(.undecodable(detail: "that frame")), seconds: 3_600, isRepeated: true)
    ) { try await self.manager.variant(for: frame) }
    #expect(processor.started.value == started)
  }

  /// Transforms of each kind: for the size, the pixels, the frame, the format and the product.
  static let wishes: [@Sendable (inout Transform) -> Void] = [
    { $0.width = 9 }, { $0.effects.blur = 9 }, { $0.frame = 9 }, { $0.accepted = [.avif] },
    { $0.product = .info(.lqip) },
  ]

  private func memoryWish(
    _ change: @Sendable (inout Transform) -> Void
  ) throws -> ImageRequest {
    var request = try wish("http://origin/a.jpg", change)
    // Without the disk tier, an AVIF is not deferred.
    request.options.store = .memory
    return request
  }

  @Test(arguments: wishes)
  func `a failure of one variant does not affect its source`(
    change: @Sendable (inout Transform) -> Void
  ) async throws {
    // Given
    openAll()
    let wish = try memoryWish(change)
    let failure = ImageError.ofVariant(.undecodable(detail: "the wish"))
    processor.failure.withLock { $0 = failure }
    _ = try? await manager.variant(for: wish)
    processor.failure.withLock { $0 = nil }
    // When, then
    await #expect(
      throws: ImageError.remembered(failure, seconds: 3_600, isRepeated: true)
    ) { try await self.manager.variant(for: wish) }
    _ = try await manager.variant(for: try request())
  }

  @Test(arguments: wishes)
  func `a failure that neither source nor variant caused is not remembered`(
    change: @Sendable (inout Transform) -> Void
  ) async throws {
    for failure: ImageError in [
      .internal(detail: "the encoder"), .outOfMemory(detail: "killed"), .deadlineExceeded,
      .overloaded(queue: "imaging", retryAfter: 1),
    ] {
      // Given
      openAll()
      let wish = try memoryWish(change)
      processor.failure.withLock { $0 = failure }
      // When
      await #expect(throws: failure) { try await self.manager.variant(for: wish) }
      processor.failure.withLock { $0 = nil }
      // Then
      #expect(manager.failedURLs().isEmpty)
    }
    _ = try await manager.variant(for: try memoryWish(change))
  }

  @Test(arguments: wishes)
  func `a failure of the source applies to all its variants`(
    change: @Sendable (inout Transform) -> Void
  ) async throws {
    // Given
    openAll()
    processor.failure.withLock { $0 = .undecodable(detail: "damaged") }
    _ = try? await manager.variant(for: try memoryWish(change))
    let started = processor.started.value
    // When, then
    await #expect(
      throws: ImageError.remembered(
        .undecodable(detail: "damaged"), seconds: 3_600, isRepeated: true)
    ) { try await self.manager.variant(for: try self.request()) }
    #expect(processor.started.value == started)
  }
}
