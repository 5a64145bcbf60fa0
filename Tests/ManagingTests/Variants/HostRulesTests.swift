// HostRulesTests: tests host rules in the manager: filtered keys and forwarded fields.

import Core
import TestSupport
import Testing

@testable import Managing

final class HostRulesTests: ManagedTests {
  private func request(_ url: String, keyURL: String) throws -> ImageRequest {
    ImageRequest(
      source: try SourceURL(parsing: url), transform: Transform(),
      keyURL: try SourceURL(parsing: keyURL))
  }

  @Test func `URLs with one key share the download of the first URL`() async throws {
    let first = try request("http://origin/a.jpg?t=1", keyURL: "http://origin/a.jpg")
    let second = try request("http://origin/a.jpg?t=2", keyURL: "http://origin/a.jpg")
    let manager = manager
    let loader = loader
    async let one = manager.variant(for: first)
    try await eventually { loader.started.value == 1 }
    async let two = manager.variant(for: second)
    try await eventually { manager.figures.coalesced == 1 }
    openAll()
    let (a, b) = try await (one, two)
    #expect(a.variant === b.variant)
    #expect(loader.requests.withLock { $0.map(\.url.text) } == ["http://origin/a.jpg?t=1"])
    let kept = await disk.source(
      for: CacheKey(source: try SourceURL(parsing: "http://origin/a.jpg")))
    #expect(kept != nil)
  }

  @Test func `forwarded headers reach the loader, and their sources have separate entries`()
    async throws
  {
    openAll()
    let plain = try request("http://origin/a.jpg")
    let field = try #require(HeaderField("X-Team", value: "red"))
    let red = plain.forwarding([field], variation: "f00")
    _ = try await manager.variant(for: plain)
    let delivery = try await manager.variant(for: red)
    #expect(delivery.variant.key.text == "http://origin/a.jpg#f00 ")
    #expect(loader.requests.withLock { $0.map(\.forwarded) } == [[], [field]])
    #expect(await disk.source(for: red.key.source) != nil)
    _ = try await manager.variant(for: red)
    #expect(loader.started.value == 2)
  }

  @Test func `failures are listed and removed by URL, regardless of forwarded headers`()
    async throws
  {
    openAll()
    loader.failure.withLock { $0 = .sourceNotFound(status: 404) }
    let plain = try request("http://origin/a.jpg")
    let red = plain.forwarding([], variation: "f00")
    for request in [plain, red] {
      await #expect(throws: ImageError.self) { try await self.manager.variant(for: request) }
    }
    #expect(manager.failedURLs().map(\.url) == ["http://origin/a.jpg", "http://origin/a.jpg"])
    #expect(manager.removeFailedURLs(try SourceURL(parsing: "http://origin/b.jpg")) == 0)
    #expect(manager.removeFailedURLs(plain.source) == 2)
    #expect(manager.failedURLs().isEmpty)
  }
}
