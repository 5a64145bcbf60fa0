// StaleReuseStepTests: tests when a stale variant is served because its source is just as stale.

import Model
import Testing

@testable import Managing

struct StaleReuseStepTests {
  private let step = StaleReuseStep(now: { UnixTime(seconds: 100) })

  @Test func `a variant as stale as its source is served without rendering`() async throws {
    // Given
    var miss = try Miss.sample()
    miss.inMemory = miss.variant(version: 1)
    miss.loaded = LoadedSource(cached: miss.source(version: 1), stale: .whileRevalidating)
    // When
    let response = try #require(try await step.run(&miss).response)
    // Then
    #expect(response.variant === miss.inMemory)
    #expect(response.status == .staleHit(.memory, .whileRevalidating, ttl: -40))
    // And an entry on disk counts first
    miss.onDisk = miss.variant(version: 1)
    #expect(
      try await step.run(&miss).response?.status == .staleHit(.disk, .whileRevalidating, ttl: -40))
  }

  @Test func `the status reports the failed request to the origin`() async throws {
    var miss = try Miss.sample()
    miss.inMemory = miss.variant(version: 1)
    miss.isCollapsed = true
    miss.loaded = LoadedSource(
      source: miss.source(version: 1), forward: .stale, originStatus: 503, stale: .ifError,
      isStored: true, timings: Timings())
    let response = try await step.run(&miss).response
    #expect(response?.status == .staleIfError(collapsed: true, originStatus: 503))
  }

  @Test func `other variants are not reused`() async throws {
    var miss = try Miss.sample()
    miss.loaded = LoadedSource(cached: miss.source(version: 1), stale: .ifError)
    #expect(try await step.run(&miss).isNext)
    // Rendered from another version
    miss.inMemory = miss.variant(version: 2)
    #expect(try await step.run(&miss).isNext)
    // Staler than its source
    miss.inMemory = miss.variant(version: 1, lifetime: 59)
    #expect(try await step.run(&miss).isNext)
    // The source is fresh
    miss.inMemory = miss.variant(version: 1)
    miss.loaded = LoadedSource(cached: miss.source(version: 1))
    #expect(try await step.run(&miss).isNext)
  }
}
