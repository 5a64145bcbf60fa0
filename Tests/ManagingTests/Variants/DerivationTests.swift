// DerivationTests: tests variants that are derived from larger ones without their source.

import Core
import TestSupport
import Testing

@testable import Managing

final class DerivationTests: ManagedTests {
  /// Opens all gates. Every result is four times as wide as high.
  private func open() {
    openAll()
    processor.result.withLock { result in
      result = { job in
        let width = job.transform.width ?? 4_000
        return TestProcessor.image(
          bytes: 9, format: .jpeg, size: PixelSize(width: width, height: width / 4))
      }
    }
  }

  private func wish(
    _ width: Int, quality: Int? = nil, change: (inout LoadOptions) -> Void = { _ in }
  ) throws -> ImageRequest {
    var request = try wish {
      $0.width = width
      $0.quality = quality
    }
    change(&request.options)
    return request
  }

  /// Returns a cached large variant whose source is not cached.
  private func makeLarge(quality: Int? = 95) async throws -> Variant {
    open()
    let made = try await manager.variant(for: try wish(1_000, quality: quality))
    await disk.remove(made.variant.key.source)
    return made.variant
  }

  @Test func `a variant is derived from a larger one without the origin, and stored`() async throws
  {
    let large = try await makeLarge()
    pass(seconds: 60)
    let small = try await manager.variant(for: try wish(400))
    #expect(small.cacheStatus == .hit(.variant))
    #expect(loader.started.value == 1)
    #expect(processor.jobs.withLock { $0.last?.file.count } == 9)
    #expect(small.variant.info.freshness == large.info.freshness, "it is as old as that")
    #expect(small.variant.info.sourceVersion == large.info.sourceVersion)
    #expect(manager.cachedVariant(for: small.variant.key) === small.variant)
    #expect(manager.figures.derived == 1)
    // Also from disk, and for a request that uses only cached entries.
    memory.remove(large.key)
    let only = try await manager.variant(for: try wish(200) { $0.cache = .only })
    #expect(only.cacheStatus == .hit(.variant))
  }

  @Test func `a cached source takes precedence over derivation`() async throws {
    open()
    _ = try await manager.variant(for: try wish(1_000, quality: 95))
    #expect(try await manager.variant(for: try wish(400)).cacheStatus == .hit(.source))
    #expect(manager.figures.derived == 0)
  }

  @Test(arguments: 0..<3)
  func `a request that requires the origin or a fresher response is not derived`(
    number: Int
  ) async throws {
    _ = try await makeLarge()
    pass(seconds: 60)
    let changes: [(inout LoadOptions) -> Void] = [
      { $0.cache = .refresh }, { $0.cache = .bypass }, { $0.age.maxAge = 10 },
    ]
    _ = try await manager.variant(for: try wish(400, change: changes[number]))
    #expect(loader.started.value == 2)
    #expect(manager.figures.derived == 0)
  }

  @Test func `an expired, purged, removed or outdated variant is not used for derivation`()
    async throws
  {
    // The variant was removed.
    var large = try await makeLarge()
    memory.remove(large.key)
    await disk.remove(large.key)
    #expect(try await manager.variant(for: try wish(400)).cacheStatus != .hit(.variant))
    // The variant was purged. The test doubles keep purged entries.
    large = try await makeLarge()
    _ = try await manager.purge(.url(try wish(1).source))
    #expect(try await manager.variant(for: try wish(396)).cacheStatus != .hit(.variant))
    // The variant is stale.
    large = try await makeLarge()
    pass(seconds: 3_600)
    #expect(try await manager.variant(for: try wish(392)).cacheStatus != .hit(.variant))
    #expect(manager.figures.derived == 0)
  }

  @Test func `a damaged variant is not used for derivation`() async throws {
    // Given a variant that replaced the listed one
    let large = try await makeLarge()
    var info = large.info
    info.isDamaged = true
    await disk.remove(large.key)
    _ = memory.store(Variant(key: large.key, info: info, body: large.body))
    // When
    let small = try await manager.variant(for: try wish(400))
    // Then
    #expect(small.cacheStatus != .hit(.variant))
    #expect(loader.started.value == 2)
  }

  @Test func `a variant of low quality is not used for derivation`() async throws {
    _ = try await makeLarge(quality: 80)
    #expect(try await manager.variant(for: try wish(400)).cacheStatus != .hit(.variant))
  }

  @Test func `a failed derivation loads the source`() async throws {
    _ = try await makeLarge()
    processor.failure.withLock { $0 = .undecodable(detail: "") }
    await #expect(throws: ImageError.self) { try await manager.variant(for: try wish(400)) }
    #expect(loader.started.value == 2 && processor.started.value == 3)
  }
}
