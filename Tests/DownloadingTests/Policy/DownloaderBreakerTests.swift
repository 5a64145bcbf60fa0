// DownloaderBreakerTests: tests of circuit breakers in Downloader.

import Downloading
import Model
import TestSupport
import Testing

@Suite(.onOwnThreads) struct DownloaderBreakerTests {
  private let body: [UInt8] = [1, 2, 3]

  /// Circuits stay open unless a test sets another open time.
  private func makeBreakingDownloader(
    after threshold: Int, _ change: (inout DownloaderConfiguration) -> Void = { _ in }
  ) throws -> Downloader {
    try makeDownloader {
      $0.breakerThreshold = threshold
      $0.breakerOpenTime = .seconds(3_600)
      change(&$0)
    }
  }

  private func isCircuitOpen(_ error: (any Error)?) -> Bool {
    if case .sourceUnreachable(let detail, let key)? = error as? ImageError {
      return detail.hasPrefix("circuit open") && key == "download.breaker_threshold"
    }
    return false
  }

  /// Fails as many loads of distinct URLs as count for `count` failed connections.
  private func fail(_ downloader: Downloader, url: String, weighing count: Int) async {
    for number in 0..<count * 4 { _ = await downloader.failure(of: "\(url)?\(number)") }
  }

  @Test func `failures of one URL do not keep other URLs of its host from loading`()
    async throws
  {
    // Given
    let origin = try Origin()
    origin.serve("/good", bytes: body)
    origin.route("/500", to: .status(500))
    origin.route("/silence", to: .silence)
    origin.route("/reset", to: .resetBeforeHead)
    origin.route("/cut", to: .truncated(body, declaring: 9))
    let downloader = try makeBreakingDownloader(after: 2) {
      $0.firstByteTimeout = .milliseconds(200)
    }
    // When
    for (path, count) in [("/500", 20), ("/silence", 10), ("/reset", 20), ("/cut", 20)] {
      for _ in 0..<count {
        let failure = await downloader.failure(of: origin.url(path))
        #expect(failure != nil && !isCircuitOpen(failure), "\(path)")
      }
    }
    // Then
    #expect(downloader.figures.circuitsOpen == 0)
    try await eventually("another URL is loaded") {
      (try? await downloader.load(origin.url("/good")).file.bytes) == body
    }
  }

  @Test func `a host that fails repeatedly is no longer requested, and other hosts are`()
    async throws
  {
    // Given
    let origin = try Origin()
    let other = try Origin()
    origin.route("/a", to: .resetBeforeHead)
    origin.serve("/good", bytes: body)
    other.serve("/a", bytes: body)
    other.route("/moved", to: .redirect(to: origin.url("/good")))
    let downloader = try makeBreakingDownloader(after: 3)
    // When
    for number in 1...12 {
      let failure = await downloader.failure(of: origin.url("/a?\(number)"))
      #expect(failure?.code == "source_unreachable" && !isCircuitOpen(failure))
    }
    // Then
    for path in ["/a", "/good"] {
      #expect(isCircuitOpen(await downloader.failure(of: origin.url(path))))
    }
    #expect(isCircuitOpen(await downloader.failure(of: other.url("/moved"))))
    #expect(origin.totalRequests == 12)
    #expect(downloader.figures.circuitsOpen == 1)
    #expect(try await downloader.load(other.url("/a")).file.bytes == body)
  }

  @Test func `errors of many URLs do not keep other clients from the host`() async throws {
    let origin = try Origin()
    origin.route("/bad", to: .status(503))
    origin.serve("/good", bytes: body)
    let downloader = try makeBreakingDownloader(after: 1)
    await fail(downloader, url: origin.url("/bad"), weighing: 6)
    #expect(downloader.figures.circuitsOpen == 0)
    #expect(try await downloader.load(origin.url("/good")).file.bytes == body)
  }

  @Test
  func `time-outs and connection failures open the circuit, and statuses about an image do not`()
    async throws
  {
    // Given
    let origin = try Origin()
    origin.route("/silence", to: .silence)
    origin.route("/reset", to: .resetBeforeHead)
    origin.route("/cut", to: .truncated(body, declaring: 9))
    let closed = try ClosedPort()
    let refused = closed.url("/a")
    let downloader = try makeBreakingDownloader(after: 2) {
      $0.firstByteTimeout = .milliseconds(100)
    }
    // When: failures of either kind, never two in a row
    for path in ["/404", "/cut", "/404", "/silence", "/404", "/reset", "/cut", "/reset", "/404"] {
      #expect(await !isCircuitOpen(downloader.failure(of: origin.url(path))), "\(path)")
    }
    #expect(downloader.figures.circuitsOpen == 0)
    // When
    for number in 1...4 {
      for path in ["/silence", "/reset"] {
        _ = await downloader.failure(of: origin.url("\(path)?\(number)"))
      }
    }
    for _ in 1...2 { _ = await downloader.failure(of: refused) }
    // Then
    #expect(downloader.figures.circuitsOpen == 2)
    #expect(isCircuitOpen(await downloader.failure(of: origin.url("/404"))))
    #expect(isCircuitOpen(await downloader.failure(of: refused)))
  }

  @Test func `when a circuit opens, loads waiting for its host fail`() async throws {
    // Given
    let origin = try Origin()
    let gate = Gate()
    origin.route("/a", to: .hold(gate, then: .resetBeforeHead))
    let downloader = try makeBreakingDownloader(after: 1) { $0.limitPerHost = 1 }
    origin.route("/bad", to: .resetBeforeHead)
    for number in 1...3 { _ = await downloader.failure(of: origin.url("/bad?\(number)")) }
    let first = Task { try await downloader.load(origin.url("/a")) }
    try await eventually("one runs") { origin.activeRequests == 1 }
    let waiting = (1...3).map { _ in Task { try await downloader.load(origin.url("/a")) } }
    try await eventually("three wait") { downloader.figures.waiting == 3 }
    // When
    gate.open()
    // Then
    #expect((await first.result.failure as? ImageError)?.code == "source_unreachable")
    for load in waiting { #expect(isCircuitOpen(await load.result.failure)) }
    #expect(origin.requests(to: "/a") == 1)
    #expect(downloader.figures.waiting == 0 && downloader.figures.running == 0)
  }

  @Test func `a recovered host is detected by a probe`() async throws {
    let origin = try Origin()
    origin.route("/a") { [body] in $0.number <= 10 ? .resetBeforeHead : .ok(body) }
    let downloader = try makeBreakingDownloader(after: 2) { $0.breakerOpenTime = .milliseconds(1) }
    await fail(downloader, url: origin.url("/a"), weighing: 2)
    #expect(downloader.figures.circuitsOpen == 1)
    try await eventually("it is loaded") {
      (try? await downloader.load(origin.url("/a")).file.count) == body.count
    }
    #expect(origin.requests(to: "/a") == 11)
    #expect(downloader.figures.circuitsOpen == 0)
    #expect(try await downloader.load(origin.url("/a")).file.bytes == body)
  }

  @Test func `one probe runs at a time, and a cancelled probe admits another`()
    async throws
  {
    // Given: a circuit that is half-open at once
    let origin = try Origin()
    origin.route("/bad", to: .resetBeforeHead)
    origin.route("/held", to: .silence)
    origin.serve("/good", bytes: body)
    let downloader = try makeBreakingDownloader(after: 1) { $0.breakerOpenTime = .zero }
    await fail(downloader, url: origin.url("/bad"), weighing: 1)
    #expect(downloader.figures.circuitsOpen == 1)
    let probe = Task { try await downloader.load(origin.url("/held")) }
    try await eventually("the probe is under way") { origin.requests(to: "/held") == 1 }
    // Then
    #expect(isCircuitOpen(await downloader.failure(of: origin.url("/good"))))
    // When
    probe.cancel()
    #expect(await probe.result.failure as? ImageError == .cancelled)
    // Then
    #expect(try await downloader.load(origin.url("/good")).file.bytes == body)
    #expect(downloader.figures.circuitsOpen == 0)
  }

  @Test func `a retry that becomes due while the circuit is open is not sent`() async throws {
    // Given: a load that waits for its retry
    let origin = try Origin()
    origin.route("/a", to: .resetBeforeHead)
    // Not retried, because the request was sent.
    origin.route("/bad", to: .silence)
    let downloader = try makeBreakingDownloader(after: 1) {
      $0.retries = 1
      $0.retryDelay = .seconds(2)
      $0.firstByteTimeout = .milliseconds(100)
    }
    async let failing = downloader.failure(of: origin.url("/a"))
    try await eventually("it failed once") { origin.requests(to: "/a") == 1 }
    // When
    await fail(downloader, url: origin.url("/bad"), weighing: 1)
    // Then: it ends with its first failure
    let failure = await failing
    #expect(failure?.code == "source_unreachable" && !isCircuitOpen(failure))
    #expect(origin.requests(to: "/a") == 1 + downloader.figures.retries)
  }

  @Test func `unresponsive hosts do not delay other hosts`() async throws {
    // Given: two unresponsive hosts with a hundred loads each, and a responsive one
    let deaf = try (0..<2).map { _ in try Origin(answers: false) }
    let origin = try Origin()
    origin.serve("/a", bytes: body)
    let downloader = try makeBreakingDownloader(after: 3) {
      $0.limit = 20
      $0.firstByteTimeout = .seconds(2)
    }
    let dead = deaf.map { $0.url("/a") }
    let urls = (0..<100).map { origin.url("/a?\($0)") }
    try await withThrowingTaskGroup(of: Bool.self) { group in
      for number in 0..<200 {
        group.addTask { await downloader.failure(of: "\(dead[number % 2])?\(number)") == nil }
      }
      for url in urls { group.addTask { try await downloader.load(url).file.count == body.count } }
      // When
      let loaded = try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
      // Then
      #expect(loaded == 100)
    }
    #expect(origin.totalRequests == 100)
    #expect(downloader.figures.circuitsOpen == 2)
  }
}
