// ExplainingTests: what is explained is what the next real request does.

import Core
import TestSupport
import Testing

@testable import Managing

final class ExplainingTests: StaleTests {
  /// A state of the cache and of the origin.
  enum State: String, CaseIterable {
    case absent
    case cached = "in both tiers"
    case onDisk = "on disk only"
    case sourceOnly = "source only"
    case stale
    case withoutValidators = "stale without validators"
    case whileRevalidate = "stale while revalidate"
    case ifError = "stale, the origin fails"
    case afterError = "stale, the origin has failed before"
    case noSource = "stale variant, no source, the origin fails"
    case notToBeServed = "stale, not to be served"
    case circuitOpen = "circuit open"
    case failedLoad = "a remembered failure to load"
    case failedRendering = "a remembered failure to render"
    case purged
    case freshSource = "a stale variant of a fresh source"
  }

  private func arrange(_ state: State) async throws {
    let request = try request()
    switch state {
    case .absent: openAll()
    case .cached: try await makeCached()
    case .onDisk:
      try await makeCached()
      memory.remove(request.key)
    case .sourceOnly:
      try await makeCached()
      memory.remove(request.key)
      await disk.remove(request.key)
    case .stale: try await makeStale()
    case .withoutValidators:
      try await makeStale()
      loader.etag.withLock { $0 = nil }
    case .whileRevalidate: try await makeStale(whileRevalidate: 60)
    case .ifError:
      try await makeStale(ifError: 600)
      breakCircuit()
    case .afterError:
      try await makeStale(ifError: 600)
      breakCircuit()
      _ = try await manager.variant(for: request)
    case .noSource:
      try await makeStale(ifError: 600)
      await disk.remove(request.key.source)
      breakCircuit()
    case .notToBeServed:
      try await makeStale()
      breakCircuit()
    case .circuitOpen:
      openAll()
      breakCircuit()
    case .failedLoad:
      openAll()
      fail(.sourceNotFound(status: 404))
      _ = try? await manager.variant(for: request)
      fail(nil)
    case .failedRendering:
      openAll()
      processor.failure.withLock { $0 = .undecodable(detail: "no image") }
      _ = try? await manager.variant(for: request)
      processor.failure.withLock { $0 = nil }
    case .purged:
      try await makeCached()
      _ = try await manager.purge(.url(request.source))
    case .freshSource:
      try await makeStale()
      _ = try await manager.variant(for: try self.request(scale: 2))
    }
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

  @Test(arguments: State.allCases, CacheUse.allCases)
  func `the next request does what was explained`(in state: State, use: CacheUse) async throws {
    // Given
    try await arrange(state)
    let request = try request { $0.cache = use }
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
