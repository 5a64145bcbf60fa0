// ExplainingTests: what is explained is what the next real request does.

import Core
import TestSupport
import Testing

@testable import Managing

/// A state of the cache and of the origin, and how a request uses the cache in it.
struct ExplainedCase: CustomTestStringConvertible {
  let name: String
  var use = CacheUse.normal
  let arrange: @Sendable (ExplainingTests) async throws -> Void

  var testDescription: String { "\(name), \(use)" }
}

final class ExplainingTests: StaleTests {
  static let states: [(String, @Sendable (ExplainingTests) async throws -> Void)] = [
    ("absent", { $0.openAll() }),
    ("in both tiers", { try await $0.makeCached() }),
    (
      "on disk only",
      {
        try await $0.makeCached()
        $0.memory.remove(try $0.request().key)
      }
    ),
    (
      "source only",
      {
        try await $0.makeCached()
        $0.memory.remove(try $0.request().key)
        await $0.disk.remove(try $0.request().key)
      }
    ),
    ("stale", { try await $0.makeStale() }),
    (
      "stale without validators",
      {
        try await $0.makeStale()
        $0.loader.etag.withLock { $0 = nil }
      }
    ),
    ("stale while revalidate", { try await $0.makeStale(whileRevalidate: 60) }),
    (
      "stale, the origin fails",
      {
        try await $0.makeStale(ifError: 600)
        $0.breakCircuit()
      }
    ),
    (
      "stale, the origin has failed before",
      {
        try await $0.makeStale(ifError: 600)
        $0.breakCircuit()
        _ = try await $0.manager.variant(for: try $0.request())
      }
    ),
    (
      "stale variant, no source, the origin fails",
      {
        try await $0.makeStale(ifError: 600)
        await $0.disk.remove(try $0.request().key.source)
        $0.breakCircuit()
      }
    ),
    (
      "stale, not to be served",
      {
        try await $0.makeStale()
        $0.breakCircuit()
      }
    ),
    (
      "circuit open",
      {
        $0.openAll()
        $0.breakCircuit()
      }
    ),
    (
      "a remembered failure to load",
      {
        $0.openAll()
        $0.fail(.sourceNotFound(status: 404))
        _ = try? await $0.manager.variant(for: try $0.request())
        $0.fail(nil)
      }
    ),
    (
      "a remembered failure to render",
      {
        $0.openAll()
        $0.processor.failure.withLock { $0 = .undecodable(detail: "no image") }
        _ = try? await $0.manager.variant(for: try $0.request())
        $0.processor.failure.withLock { $0 = nil }
      }
    ),
    (
      "purged",
      {
        try await $0.makeCached()
        _ = try await $0.manager.purge(.url(try SourceURL(parsing: "http://origin/a.jpg")))
      }
    ),
    (
      "a stale variant of a fresh source",
      {
        try await $0.makeStale()
        _ = try await $0.manager.variant(for: try $0.request(scale: 2))
      }
    ),
  ]

  static let cases = states.flatMap { name, arrange in
    CacheUse.allCases.map { ExplainedCase(name: name, use: $0, arrange: arrange) }
  }

  func makeCached() async throws {
    openAll()
    loader.etag.withLock { $0 = "\"v1\"" }
    _ = try await manager.variant(for: try request())
  }

  /// Lets loads fail, and the loader say so.
  func breakCircuit() {
    let error = ImageError.sourceUnreachable(detail: "circuit open", key: nil)
    fail(error)
    var outlook = LoadOutlook()
    outlook.error = error
    loader.outlook.withLock { $0 = outlook }
  }

  /// What the façade and its caller do: a memory hit, an answer at once, or a flight.
  private func perform(_ request: ImageRequest) async -> Result<String, ImageError> {
    if let delivery = manager.deliveryAtOnce(for: request) {
      return .success(delivery.cacheStatus.headerValue)
    }
    do throws(ImageError) {
      return .success(try await manager.variant(for: request).cacheStatus.headerValue)
    } catch {
      return .failure(error)
    }
  }

  @Test(arguments: cases) func `the next request does what was explained`(
    of explained: ExplainedCase
  ) async throws {
    // Given
    try await explained.arrange(self)
    let request = try request { $0.cache = explained.use }
    let (loads, jobs) = (loader.started.value, processor.started.value)
    // When
    let explanation = await manager.explain(request)
    let again = await manager.explain(request)
    // Then: nothing happened, and nothing changed.
    #expect(again == explanation)
    #expect(loader.started.value == loads)
    #expect(processor.started.value == jobs)
    let answer = try #require(explanation.answer)
    let steps = explanation.would.map { "\($0.step) \($0.outcome): \($0.why)" }
    #expect(explanation.would.last?.outcome == (answer.code == nil ? .answers : .fails))
    #expect(explanation.would.dropLast().allSatisfy { $0.outcome == .next })
    switch await perform(request) {
    case .success(let status):
      #expect(status.hasPrefix(try #require(answer.cacheStatus, "\(steps)")), "\(steps)")
    case .failure(let error):
      #expect(answer.code == error.code, "\(steps)")
      #expect(answer.status == error.status)
    }
  }

  @Test func `an explanation has the state of the entries and what the origin said`() async throws {
    loader.cacheControl.withLock { $0 = "max-age=60" }
    try await makeCached()
    pass(seconds: 10)
    let explanation = await manager.explain(try request())
    let source = try #require(explanation.source)
    #expect(source.age == 10)
    #expect(source.ttl == 3_590)
    #expect(source.use == .fresh)
    #expect(source.etag == "\"v1\"")
    #expect(source.received == 1_000)
    #expect(source.origin?.status == 200)
    #expect(source.origin?.cacheControl == "max-age=60")
    #expect(explanation.memory?.bytes == 3)
    #expect(explanation.memory?.origin == nil)
    #expect(explanation.would.map(\.step) == ["memory"])
  }

  @Test func `a running flight is joined, and the request collapses`() async throws {
    processor.gate.open()
    let request = try request()
    let first = asking(request)
    try await eventually { [loader] in loader.started.value == 1 }
    let explanation = await manager.explain(request)
    #expect(explanation.flights.variant == 1)
    #expect(explanation.flights.source == 1)
    #expect(explanation.answer?.cacheStatus == "pictor; fwd=uri-miss")
    #expect(explanation.answer?.isCollapsed == true)
    let second = asking(request)
    try await eventually { [manager] in manager.figures.waiting == 3 }
    loader.gate.open()
    _ = try await first.value
    #expect(try await second.value.cacheStatus.headerValue.contains("collapsed"))
  }

  @Test func `a smaller variant is derived from a larger one without its source`() async throws {
    openAll()
    processor.result.withLock {
      $0 = { job in
        let width = job.transform.width ?? 400
        return TestProcessor.image(
          bytes: 3, format: .png, size: PixelSize(width: width, height: width))
      }
    }
    var large = Transform()
    large.width = 400
    large.output.format = .png
    var small = large
    small.width = 100
    let source = try SourceURL(parsing: "http://origin/a.png")
    _ = try await manager.variant(for: ImageRequest(source: source, transform: large))
    let request = ImageRequest(source: source, transform: small)
    await disk.remove(request.key.source)
    let explanation = await manager.explain(request)
    #expect(explanation.would.last?.step == "derivation")
    let status = try #require(explanation.answer?.cacheStatus)
    #expect(try await manager.variant(for: request).cacheStatus.headerValue == status)
  }

  @Test func `an AVIF that is not cached is explained as its fallback`() async throws {
    openAll()
    let request = try request().accepting([.avif, .webp])
    let explanation = await manager.explain(request)
    #expect(explanation.would.map(\.step).contains("fallback-format"))
    let status = try #require(explanation.answer?.cacheStatus)
    #expect(try await manager.variant(for: request).cacheStatus.headerValue.hasPrefix(status))
  }

  @Test func `a pending AVIF is explained as its fallback, which answers at once`() async throws {
    openAll()
    processor.avifGate.withLock { $0 = Gate() }
    let request = try request().accepting([.avif, .webp])
    _ = try await manager.variant(for: request)
    try await eventually { [manager] in manager.figures.avifsWaiting == 1 }
    let explanation = await manager.explain(request)
    #expect(explanation.would.last?.step == "pending-avif")
    let status = try #require(explanation.answer?.cacheStatus)
    #expect(manager.deliveryAtOnce(for: request)?.cacheStatus.headerValue == status)
  }

  @Test(arguments: [false, true])
  func `a watermark is explained as the source that it is`(hasFailed: Bool) async throws {
    try await makeCached()
    let request = try wish {
      $0.watermark = Watermark(source: try SourceURL(parsing: "http://marks/logo.png"))
    }
    if hasFailed {
      fail(.sourceNotFound(status: 404))
      _ = try? await manager.variant(for: request)
      fail(nil)
    }
    let explanation = await manager.explain(request)
    #expect(explanation.would.map(\.step).contains("watermark"))
    switch await perform(request) {
    case .success(let status):
      #expect(!hasFailed && status == explanation.answer?.cacheStatus)
    case .failure(let error): #expect(hasFailed && explanation.answer?.code == error.code)
    }
  }
}
