// PrefetchingTests: tests Prefetcher with a manager on test doubles.

import Core
import TestSupport
import Testing

@testable import Managing

final class PrefetchingTests: ManagedTests {
  @Test func `a prefetched image is a hit for later requests and is skipped next time`()
    async throws
  {
    openAll()
    let prefetcher = Prefetcher(provider: manager)
    let urls = (0..<20).map { "http://host\($0 % 4)/\($0).jpg" }
    let first = try await end(of: try prefetcher.prefetch(prefetchLines(urls)), in: prefetcher)
    #expect((first.total, first.finished, first.skipped, first.failed) == (20, 20, 0, 0))
    #expect(first.state == .finished)
    let kept = try await manager.variant(for: try request(urls[7]))
    #expect(kept.cacheStatus == .hit(.memory))
    let again = try await end(of: try prefetcher.prefetch(prefetchLines(urls)), in: prefetcher)
    #expect((again.finished, again.skipped) == (0, 20))
    // Checking for a cached image does not count as a look-up in memory.
    #expect(memory.lookups.value == 0)
    #expect(loader.started.value == 20)
    let figures = prefetcher.figures
    #expect(figures.finished == 20 && figures.skipped == 20 && figures.failed == 0)
    #expect(
      figures.lists == 0 && figures.waiting == 0 && figures.running == 0 && figures.limit == 3)
  }

  @Test func `a fresh image on disk is skipped, and an expired one is loaded`() async throws {
    openAll()
    let fresh = try request("http://a/fresh.jpg")
    _ = try await manager.variant(for: fresh)
    memory.remove(fresh.key)
    let prefetcher = Prefetcher(provider: manager)
    let urls = ["http://a/fresh.jpg"]
    #expect(
      try await end(of: try prefetcher.prefetch(prefetchLines(urls)), in: prefetcher).skipped == 1)
    pass(seconds: 3_600)
    #expect(
      try await end(of: try prefetcher.prefetch(prefetchLines(urls)), in: prefetcher).finished == 1)
  }

  @Test func `a stale image is revalidated within the limits`() async throws {
    freshness.staleWhileRevalidate.withLock { $0 = 100 }
    loader.etag.withLock { $0 = "\"v1\"" }
    openAll()
    let urls = (0..<5).map { "http://a/\($0).jpg" }
    for url in urls { _ = try await manager.variant(for: try request(url)) }
    // One image has to be read from disk.
    memory.remove(try request(urls[0]).key)
    pass(seconds: 3_605)
    let gates = (6...10).map { (number: $0, gate: Gate()) }
    loader.gates.withLock { $0 = Dictionary(uniqueKeysWithValues: gates) }
    let prefetcher = Prefetcher(provider: manager)
    let id = try prefetcher.prefetch(prefetchLines(urls))
    for (done, (number, gate)) in gates.enumerated() {
      // The line has joined its revalidation. All images are of one host, so no other line has
      // started.
      try await eventually { [loader, manager] in
        loader.started.value == number && manager.figures.coalesced == done + 1
      }
      #expect(prefetcher.prefetchStatus(id)?.done == done)
      #expect(manager.freshnessFigures.revalidations == done + 1)
      gate.open()
    }
    #expect(try await end(of: id, in: prefetcher).finished == 5)
    #expect(loader.started.value == 10)
  }

  @Test func `a line that requires the origin is not skipped`() async throws {
    openAll()
    _ = try await manager.variant(for: try request())
    let prefetcher = Prefetcher(provider: manager)
    let line = PrefetchLine(number: 1, request: .success(try request { $0.cache = .refresh }))
    #expect(try await end(of: try prefetcher.prefetch([line]), in: prefetcher).finished == 1)
    #expect(loader.started.value == 2)
  }

  @Test func `a prefetch loads at low priority until a client requests the image`() async throws {
    let prefetcher = Prefetcher(provider: manager)
    let id = try prefetcher.prefetch(prefetchLines(["http://origin/a.jpg"]))
    try await eventually { [loader] in loader.started.value == 1 }
    let priority = try #require(loader.requests.withLock { $0.first?.priority })
    #expect(priority.observe { _ in } == .low)
    let client = asking(try request())
    try await eventually { priority.observe { _ in } == .normal }
    openAll()
    _ = try await client.value
    #expect(try await end(of: id, in: prefetcher).finished == 1)
    #expect(loader.started.value == 1)
  }

  @Test func `cancelling ends the list's downloads and no client's`() async throws {
    let prefetcher = Prefetcher(provider: manager)
    let id = try prefetcher.prefetch(prefetchLines((0..<9).map { "http://host\($0)/a.jpg" }))
    try await eventually { [loader] in loader.started.value == 3 }
    let client = asking(try request("http://host0/a.jpg"))
    try await eventually { [manager] in manager.figures.coalesced == 1 }
    #expect(prefetcher.cancelPrefetch(id))
    #expect(!prefetcher.cancelPrefetch(id), "it does not run any more")
    try await eventually { [loader] in loader.cancelled.value == 2 }
    openAll()
    _ = try await client.value
    let status = try #require(prefetcher.prefetchStatus(id))
    #expect(status.state == .cancelled && status.done == 0 && status.total == 9)
    try await eventually { prefetcher.figures.running == 0 }
    #expect(loader.started.value == 3)
  }
}
