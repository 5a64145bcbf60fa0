// DerivationStepTests: tests variants that are derived from larger ones without their source.

import Model
import Testing

@testable import Managing

final class DerivationStepTests: ManagedTests {
  /// Opens all gates. Every result is four times as wide as high.
  private func open() {
    openAll()
    processor.result.withLock { result in
      result = { job in
        let width = job.transform.width ?? 4_000
        return TestProcessor.image(
          bytes: 9, .jpeg, PixelSize(width: width, height: width / 4))
      }
    }
  }

  private func wish(
    _ width: Int, quality: Int? = nil, _ change: (inout LoadOptions) -> Void = { _ in }
  ) throws -> ImageRequest {
    var transform = Transform()
    (transform.width, transform.quality) = (width, quality)
    var request = ImageRequest(
      source: try SourceURL(parsing: "http://origin/a.jpg"), transform: transform)
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

  @Test func `it is made of the larger one, without the origin, and kept`() async throws {
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

  @Test func `where the source is kept it is made of that`() async throws {
    open()
    _ = try await manager.variant(for: try wish(1_000, quality: 95))
    #expect(try await manager.variant(for: try wish(400)).cacheStatus == .hit(.source))
    #expect(manager.figures.derived == 0)
  }

  @Test(arguments: 0..<3) func `who wants the origin asked, or something fresher, gets that`(
    number: Int
  ) async throws {
    _ = try await makeLarge()
    pass(seconds: 60)
    let changes: [(inout LoadOptions) -> Void] = [
      { $0.cache = .refresh }, { $0.cache = .bypass }, { $0.age.maxAge = 10 },
    ]
    _ = try await manager.variant(for: try wish(400, changes[number]))
    #expect(loader.started.value == 2)
    #expect(manager.figures.derived == 0)
  }

  @Test func `what is too old, purged, gone or of other bytes is made nothing of`() async throws {
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

  @Test func `one of low quality is made nothing of`() async throws {
    _ = try await makeLarge(quality: 80)
    #expect(try await manager.variant(for: try wish(400)).cacheStatus != .hit(.variant))
  }

  @Test func `where nothing can be made of the larger one the source is loaded`() async throws {
    _ = try await makeLarge()
    processor.failure.withLock { $0 = .undecodable(detail: "") }
    await #expect(throws: ImageError.self) { try await manager.variant(for: try wish(400)) }
    #expect(loader.started.value == 2 && processor.started.value == 3)
  }

  @Test func `a configuration without it asks the origin`() async throws {
    let large = try await makeLarge()
    let plain = ImageManager(
      memory: memory, disk: disk, loader: loader, processor: processor,
      freshnessPolicy: freshness, purges: purges, derives: false,
      now: { [clock] in UnixTime(seconds: clock.seconds.withLock { $0 }) })
    memory.remove(large.key)
    _ = try await plain.variant(for: try wish(1_000, quality: 95))
    #expect(try await plain.variant(for: try wish(400)).cacheStatus != .hit(.variant))
  }
}
