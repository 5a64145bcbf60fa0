// MemorySweepTests: purges of a large memory tier.

import Core
import TestSupport
import Testing

@testable import Managing

final class MemorySweepTests: ManagedTests {
  @Test func `a purge of a large tier is answered before its variants have left memory`()
    async throws
  {
    // Given
    openAll()
    memory.size.withLock { $0 = MemorySweep.quickCount + 1 }
    let other = try request("http://origin/b.jpg")
    for request in [try request(), other] { _ = try await manager.variant(for: request) }
    let gate = Gate()
    memory.beforeRemoval.withLock { $0 = { try? blockUntil("it is open") { gate.isOpen } } }
    // When
    let report = try await manager.purge(.url(try request().source))
    // Then
    #expect(report.memory == nil)
    let key = try request().key
    #expect(manager.cachedVariant(for: key) == nil && memory.peek(key) != nil)
    #expect(!manager.isCached(key))
    #expect(manager.cachedVariant(for: other.key) != nil)
    // When: another purge comes during the sweep, and an image is loaded again
    _ = try await manager.purge(.url(other.source))
    _ = try await manager.variant(for: try request())
    #expect(manager.cachedVariant(for: other.key) == nil)
    gate.open()
    // Then
    try await eventually("it has left memory") { [memory] in memory.peek(other.key) == nil }
    #expect(manager.cachedVariant(for: key) != nil, "it is of after the purge")
  }
}
