// PrefetcherTests: tests Prefetcher with a scripted image provider.

import Core
import TestSupport
import Testing

@testable import Managing

/// A provider with scripted responses that records how many requests run at once.
private final class ScriptedProvider: ImageProvider {
  struct State {
    /// The responses by URL, in order. Without one, the image counts as downloaded.
    var answers: [String: [Result<CacheStatus, ImageError>]] = [:]
    var asked: [ImageRequest] = []
    var running: [String: Int] = [:]
    var maximumRunning = 0
    var maximumOfAHost = 0
  }
  let state = Lock(State())
  let gate = Gate()
  let cancelled = Count()

  func cachedVariant(for key: CacheKey) -> Variant? { nil }
  func deliveryAtOnce(for request: ImageRequest) -> ImageDelivery? { nil }

  func variant(for request: ImageRequest) async throws(ImageError) -> ImageDelivery {
    #expect(ImagingAccounts.current == nil, "a client pays for a prefetch")
    let url = request.source.text
    let answer = state.withLock { state in
      state.asked.append(request)
      state.running[request.source.host, default: 0] += 1
      state.maximumRunning = max(state.maximumRunning, state.running.values.reduce(0, +))
      state.maximumOfAHost = max(state.maximumOfAHost, state.running[request.source.host] ?? 0)
      guard state.answers[url]?.isEmpty == false else {
        return nil as Result<CacheStatus, ImageError>?
      }
      return state.answers[url]?.removeFirst()
    }
    await gate.pass()
    state.withLock { $0.running[request.source.host, default: 0] -= 1 }
    if Task.isCancelled {
      cancelled.add()
      throw .cancelled
    }
    let status = try answer?.get() ?? loaded
    let info = VariantInfo(
      .image(
        RenderedImage(format: .jpeg, size: PixelSize(width: 1, height: 1), density: 1)),
      etag: "\"1\"",
      freshness: Freshness(receivedAt: UnixTime(seconds: 0), lifetime: 1))
    let bytes = [1].withUnsafeBytes { ImageBytes(copying: $0) }
    return ImageDelivery(
      variant: Variant(key: request.key, info: info, body: .memory(bytes)), cacheStatus: status,
      timings: Timings())
  }

  var asked: [String] { state.withLock { $0.asked.map(\.source.text) } }
}

private let loaded = CacheStatus.missed(.uriMiss)

func prefetchLines(_ urls: [String]) throws -> [PrefetchLine] {
  try urls.enumerated().map { index, url in
    PrefetchLine(
      number: index + 1,
      request: .success(
        ImageRequest(source: try SourceURL(parsing: url), transform: Transform())))
  }
}

/// Waits for a list to end and returns its status.
func end(of id: String, in prefetcher: Prefetcher) async throws -> PrefetchStatus {
  try await eventually { prefetcher.prefetchStatus(id)?.state != .running }
  return try #require(prefetcher.prefetchStatus(id))
}

struct PrefetcherTests {
  private let provider = ScriptedProvider()
  private let pauses = Lock<[Duration]>([])

  private func prefetcher(
    endedLists: Int = 64, _ change: (inout PrefetchSettings) -> Void = { _ in }
  ) -> Prefetcher {
    var settings = PrefetchSettings()
    change(&settings)
    return Prefetcher(
      provider: provider, settings: settings, endedLists: endedLists,
      pause: { [pauses] duration in pauses.withLock { $0.append(duration) } })
  }

  private func answer(_ url: String, with answers: Result<CacheStatus, ImageError>...) {
    provider.state.withLock { $0.answers[url] = answers }
  }

  // MARK: Limits

  @Test func `three requests run at a time, one per host, and each line once`() async throws {
    provider.gate.open()
    let prefetcher = prefetcher()
    let urls = (0..<300).map { "http://host\($0 % 7)/\($0)" }
    let ids = try (0..<3).map { number in
      try prefetcher.prefetch(prefetchLines(urls.map { "\($0)?\(number)" }))
    }
    for id in ids { #expect(try await end(of: id, in: prefetcher).finished == 300) }
    let asked = provider.asked
    #expect(asked.count == 900 && Set(asked).count == 900)
    #expect(provider.state.withLock { $0.maximumRunning } <= 3)
    #expect(provider.state.withLock { $0.maximumOfAHost } == 1)
  }

  @Test func `the operator who sends a list is not charged for its images`() async throws {
    let prefetcher = prefetcher()
    let id = try ImagingAccounts.$current.withValue(UnlimitedAccount()) {
      try prefetcher.prefetch(prefetchLines((0..<9).map { "http://a/\($0)" }))
    }
    provider.gate.open()
    #expect(try await end(of: id, in: prefetcher).finished == 9)
  }

  @Test func `a host that does not respond delays only its own lines`() async throws {
    let prefetcher = prefetcher()
    _ = try prefetcher.prefetch(prefetchLines((0..<50).map { "http://dead/\($0)" }))
    try await eventually { [provider] in provider.asked.count == 1 }
    let other = try prefetcher.prefetch(prefetchLines(["http://a/1", "http://b/1"]))
    try await eventually { [provider] in provider.asked.count == 3 }
    #expect(prefetcher.figures.running == 3)
    #expect(prefetcher.figures.waiting == 49)
    #expect(prefetcher.prefetchStatus(other)?.state == .running)
    prefetcher.shutDown()
  }

  @Test func `lists beyond the limit are refused until one ends`() async throws {
    let prefetcher = prefetcher { $0.lists = 2 }
    let ids = try (0..<2).map { try prefetcher.prefetch(prefetchLines(["http://a/\($0)"])) }
    #expect(throws: ImageError.overloaded(queue: "prefetch", retryAfter: 10)) {
      try prefetcher.prefetch(try prefetchLines(["http://a/3"]))
    }
    #expect(prefetcher.figures.lists == 2)
    #expect(prefetcher.cancelPrefetch(ids[0]))
    _ = try prefetcher.prefetch(prefetchLines(["http://a/3"]))
    prefetcher.shutDown()
  }

  @Test func `only the most recently ended lists can be queried`()
    async throws
  {
    let prefetcher = prefetcher(endedLists: 2)
    let long = try prefetcher.prefetch(prefetchLines(["http://a/1"]))
    let bad = PrefetchLine(number: 1, request: .failure(.missingParameter("url")))
    let short = try (0..<3).map { _ in try prefetcher.prefetch([bad]) }
    #expect(prefetcher.prefetches().map(\.id) == [long, short[1], short[2]])
    #expect(prefetcher.prefetchStatus(short[0]) == nil)
    provider.gate.open()
    _ = try await end(of: long, in: prefetcher)
    // This list started first and ended last.
    #expect(prefetcher.prefetches().map(\.id) == [long, short[2]])
  }

  // MARK: Failures

  @Test func `a failure is counted by code and listed with its line, and the others continue`()
    async throws
  {
    provider.gate.open()
    answer("http://a/2", with: .failure(.sourceNotFound(status: 404)))
    answer(
      "http://a/4",
      with: .failure(.remembered(.sourceNotFound(status: 410), seconds: 9, isRepeated: true)))
    answer("http://a/5", with: .success(.hit(.source)))
    answer("http://a/6", with: .success(.hit(.disk)))
    let prefetcher = prefetcher()
    var list = try prefetchLines((1...6).map { "http://a/\($0)" })
    list[2] = PrefetchLine(number: 3, request: .failure(.unknownParameter("ww")))
    let status = try await end(of: try prefetcher.prefetch(list), in: prefetcher)
    #expect((status.finished, status.skipped, status.failed) == (2, 1, 3))
    #expect(status.reasons == ["source_not_found": 2, "unknown_parameter": 1])
    #expect(status.failures.map(\.line) == [3, 2, 4])
    #expect(status.failures[1].message == "the source does not exist (404)")
    #expect(pauses.withLock { $0 }.isEmpty)
  }

  @Test func `an overloaded request is retried with growing pauses`() async throws {
    provider.gate.open()
    let full = Result<CacheStatus, ImageError>.failure(
      .overloaded(queue: "download", retryAfter: 1))
    answer("http://a/1", with: full, .failure(.draining), full, .success(loaded))
    let prefetcher = prefetcher()
    let status = try await end(
      of: try prefetcher.prefetch(prefetchLines(["http://a/1"])), in: prefetcher)
    #expect(status.finished == 1 && status.failed == 0)
    #expect(pauses.withLock { $0 } == [.seconds(1), .seconds(2), .seconds(4)])
  }

  @Test func `an overloaded request fails after five retries`() async throws {
    provider.gate.open()
    let full = Result<CacheStatus, ImageError>.failure(.overloaded(queue: "imaging", retryAfter: 1))
    provider.state.withLock { $0.answers["http://a/1"] = Array(repeating: full, count: 9) }
    let prefetcher = prefetcher()
    let status = try await end(
      of: try prefetcher.prefetch(prefetchLines(["http://a/1"])), in: prefetcher)
    #expect(status.reasons == ["overloaded": 1])
    #expect(provider.asked.count == 6)
    #expect(pauses.withLock { $0 } == [1, 2, 4, 8, 16].map { .seconds($0) })
  }

  @Test func `a list can be cancelled during a retry pause`() async throws {
    provider.gate.open()
    answer("http://a/1", with: .failure(.overloaded(queue: "imaging", retryAfter: 1)))
    let waiting = Count()
    let never = Gate()
    let prefetcher = Prefetcher(
      provider: provider,
      pause: { _ in
        waiting.add()
        await never.pass()
      })
    let id = try prefetcher.prefetch(prefetchLines(["http://a/1"]))
    try await eventually { waiting.value == 1 }
    #expect(prefetcher.cancelPrefetch(id))
    try await eventually { prefetcher.figures.running == 0 }
    #expect(provider.asked.count == 1)
  }

  // MARK: Shutdown

  @Test func `a shutdown cancels all lists and refuses new ones`() async throws {
    let prefetcher = prefetcher()
    let ids = try (0..<2).map {
      try prefetcher.prefetch(prefetchLines(["http://a/\($0)", "http://b/\($0)"]))
    }
    try await eventually { [provider] in provider.asked.count == 2 }
    prefetcher.shutDown()
    for id in ids { #expect(prefetcher.prefetchStatus(id)?.state == .cancelled) }
    try await eventually { [provider] in provider.cancelled.value == 2 }
    #expect(throws: ImageError.draining) { try prefetcher.prefetch([]) }
  }

  @Test func `an unknown list has no status, observers or cancellation`() {
    let prefetcher = prefetcher()
    #expect(prefetcher.prefetchStatus("x") == nil)
    #expect(!prefetcher.cancelPrefetch("x"))
    #expect(prefetcher.observePrefetch("x") { _ in } == nil)
  }

  // MARK: Observers

  @Test func `an observer receives each step in order, with the end last`() async throws {
    let prefetcher = prefetcher()
    let told = Lock<[PrefetchStatus]>([])
    let id = try prefetcher.prefetch(prefetchLines((0..<200).map { "http://host\($0 % 5)/\($0)" }))
    let observation = prefetcher.observePrefetch(id) { status in told.withLock { $0.append(status) }
    }
    provider.gate.open()
    try await eventually { told.withLock { $0.last?.state == .finished } }
    #expect(told.withLock { $0.map(\.done) } == Array(1...200))
    #expect(told.withLock { $0.dropLast().allSatisfy { $0.state == .running } })
    withExtendedLifetime(observation) {}
  }

  @Test func `an observer receives a cancellation, or the end if it came earlier`()
    async throws
  {
    let prefetcher = prefetcher()
    let told = Lock<[PrefetchStatus.State]>([])
    let id = try prefetcher.prefetch(prefetchLines(["http://a/1"]))
    let first = prefetcher.observePrefetch(id) { status in
      told.withLock { $0.append(status.state) }
    }
    #expect(prefetcher.cancelPrefetch(id))
    #expect(told.withLock { $0 } == [.cancelled])
    let second = prefetcher.observePrefetch(id) { status in
      told.withLock { $0.append(status.state) }
    }
    #expect(told.withLock { $0 } == [.cancelled, .cancelled])
    withExtendedLifetime((first, second)) {}
  }

  @Test func `a released observer receives nothing more`() async throws {
    let prefetcher = prefetcher()
    let told = Count()
    let id = try prefetcher.prefetch(prefetchLines(["http://a/1", "http://a/2"]))
    var observation = prefetcher.observePrefetch(id) { _ in told.add() }
    #expect(observation != nil)
    observation = nil
    provider.gate.open()
    _ = try await end(of: id, in: prefetcher)
    #expect(told.value == 0)
  }

  @Test func `an observer can cancel the list that it observes`() async throws {
    let prefetcher = prefetcher()
    let ended = Lock<PrefetchStatus?>(nil)
    let id = try prefetcher.prefetch(prefetchLines((0..<500).map { "http://a/\($0)" }))
    let observation = prefetcher.observePrefetch(id) { status in
      _ = prefetcher.cancelPrefetch(id)
      if status.state == .cancelled { ended.withLock { $0 = status } }
    }
    // Opened only now: on a busy machine the list could end before it is observed.
    provider.gate.open()
    try await eventually { ended.withLock { $0 != nil } }
    try await eventually { prefetcher.figures.running == 0 }
    #expect(prefetcher.figures.waiting == 0)
    withExtendedLifetime(observation) {}
  }

  // MARK: Random tests

  @Test(arguments: [1, 2, 3])
  func `lists that start, end and fail at random leave no state`(seed: Int) async throws {
    provider.gate.open()
    var random = SeededGenerator(seed: UInt64(seed))
    let prefetcher = prefetcher(endedLists: 1_000) {
      $0.limit = 4
      $0.limitPerHost = 2
    }
    var ids: [String] = []
    for list in 0..<60 {
      let urls = (0..<Int.random(in: 0...80, using: &random)).map {
        "http://host\(Int.random(in: 0..<6, using: &random))/\(list)-\($0)"
      }
      for url in urls where Int.random(in: 0..<10, using: &random) == 0 {
        answer(url, with: .failure(.sourceTimeout(detail: "")))
      }
      let list = try prefetchLines(urls)
      while true {
        guard let id = try? prefetcher.prefetch(list) else {
          await Task.yield()
          continue
        }
        ids.append(id)
        break
      }
      if Int.random(in: 0..<4, using: &random) == 0, let id = ids.randomElement(using: &random) {
        _ = prefetcher.cancelPrefetch(id)
      }
    }
    for id in ids {
      let status = try await end(of: id, in: prefetcher)
      #expect(status.state == .cancelled || status.done == status.total)
      #expect(status.failed == status.reasons.values.reduce(0, +))
    }
    try await eventually { prefetcher.figures.running == 0 }
    #expect(prefetcher.figures.waiting == 0 && prefetcher.figures.lists == 0)
    #expect(Set(provider.asked).count == provider.asked.count)
    #expect(provider.state.withLock { $0.maximumRunning } <= 4)
    #expect(provider.state.withLock { $0.maximumOfAHost } <= 2)
  }
}
