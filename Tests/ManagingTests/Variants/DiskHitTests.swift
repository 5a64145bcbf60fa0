// DiskHitTests: tests of fresh variants that the disk has at hand.

import Core
import TestSupport
import Testing

@testable import Managing

final class DiskHitTests: ManagedTests {
  /// Stores a variant on disk alone.
  private func onDisk() async throws -> ImageRequest {
    openAll()
    let request = try request()
    _ = try await manager.variant(for: request)
    disk.atHand.withLock { $0 = [request.key] }
    memory.remove(request.key)
    return request
  }

  @Test func `a fresh variant on disk is returned and stored in memory`() async throws {
    let request = try await onDisk()
    #expect(manager.cachedVariant(for: request.key) == nil)
    let found = try #require(manager.variantOnDisk(for: request.key) { request })
    #expect(found.key == request.key)
    #expect(manager.cachedVariant(for: request.key) === found)
    #expect(processor.started.value == 1)
  }

  @Test func `a stale variant on disk is not returned`() async throws {
    let request = try await onDisk()
    pass(seconds: 3_605)
    #expect(manager.variantOnDisk(for: request.key) { request } == nil)
    #expect(manager.cachedVariant(for: request.key) == nil)
  }

  @Test func `what the disk has not at hand is not returned`() async throws {
    let request = try await onDisk()
    disk.atHand.withLock { $0 = [] }
    #expect(manager.variantOnDisk(for: request.key) { request } == nil)
  }
}
