// DownloaderBreakerTests: tests of circuit breakers in Downloader.

import Core
import TestSupport
import Testing

@testable import Downloading

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

  /// Lets an origin refuse some loads' connections, and returns one that replaces it at its port.
  private func fail(_ downloader: Downloader, at origin: Origin, times: Int) async throws -> Origin
  {
    origin.stop()
    for _ in 0..<times { _ = await downloader.failure(of: origin.url("/down")) }
    return try Origin(port: origin.port)
  }

  @Test(arguments: ["/500", "/silence", "/reset", "/cut"])
  func `failures of a host's URLs do not keep its other URLs from loading`(path: String)
    async throws
  {
    // Given
    let origin = try Origin()
    origin.serve("/good", bytes: body)
    origin.route("/500", to: .status(500))
    origin.route("/silence", to: .silence)
    origin.route("/reset", to: .resetBeforeHead)
    origin.route("/cut", to: .truncated(body, declaring: 9))
    let downloader = try makeBreakingDownloader(after: 1) {
      $0.firstByteTimeout = .milliseconds(100)
    }
    // When
    for number in 0..<8 {
      let failure = await downloader.failure(of: origin.url("\(path)?\(number)"))
      #expect(failure != nil && !isCircuitOpen(failure))
    }
    // Then
    #expect(downloader.figures.circuitsOpen == 0)
    try await eventually("another URL is loaded") {
      (try? await downloader.load(origin.url("/good")).file.bytes) == body
    }
  }

  @Test func `TLS at a port without it is no failure of the host`() async throws {
    let origin = try Origin()
    origin.serve("/good", bytes: body)
    let downloader = try makeBreakingDownloader(after: 1)
    let secure = "https://127.0.0.1:\(origin.port)/good"
    #expect(await downloader.failure(of: secure)?.code == "source_tls")
    #expect(isCircuitOpen(await downloader.failure(of: secure)))
    #expect(try await downloader.load(origin.url("/good")).file.bytes == body)
  }

  @Test func `a host that refuses connections is no longer asked, and other hosts are`()
    async throws
  {
    // Given
    let origin = try Origin()
    let other = try Origin()
    other.serve("/a", bytes: body)
    other.route("/moved", to: .redirect(to: origin.url("/good")))
    let downloader = try makeBreakingDownloader(after: 3)
    // When
    let reborn = try await fail(downloader, at: origin, times: 3)
    reborn.serve("/good", bytes: body)
    // Then
    #expect(isCircuitOpen(await downloader.failure(of: origin.url("/good"))))
    #expect(isCircuitOpen(await downloader.failure(of: other.url("/moved"))))
    #expect(reborn.totalRequests == 0)
    #expect(downloader.figures.circuitsOpen == 1)
    #expect(try await downloader.load(other.url("/a")).file.bytes == body)
  }

  @Test func `when a circuit opens, loads waiting for its host fail`() async throws {
    // Given
    let resolver = TestResolver()
    resolver.hold()
    defer { resolver.release() }
    let downloader = try makeBreakingDownloader(after: 1) {
      $0.limitPerHost = 1
      $0.lookUp = resolver.lookUp
    }
    let first = Task { try await downloader.load("http://unknown.example/a") }
    try await eventually("it is looked up") { resolver.names.count == 1 }
    let waiting = (1...3).map { _ in
      Task { try await downloader.load("http://unknown.example/a") }
    }
    try await eventually("all wait for the name") { downloader.figures.waiting == 4 }
    // When
    resolver.release()
    // Then
    #expect((await first.result.failure as? ImageError)?.code == "source_unreachable")
    for load in waiting { #expect(isCircuitOpen(await load.result.failure)) }
    #expect(downloader.figures.waiting == 0 && downloader.figures.running == 0)
  }

  @Test func `a recovered host is detected by a probe`() async throws {
    let origin = try Origin()
    let downloader = try makeBreakingDownloader(after: 2) { $0.breakerOpenTime = .milliseconds(1) }
    let reborn = try await fail(downloader, at: origin, times: 2)
    reborn.serve("/a", bytes: body)
    #expect(downloader.figures.circuitsOpen == 1)
    try await eventually("it is loaded") {
      (try? await downloader.load(origin.url("/a")).file.count) == body.count
    }
    #expect(reborn.totalRequests == 1)
    #expect(downloader.figures.circuitsOpen == 0)
  }

  @Test func `one probe runs at a time, and a cancelled probe admits another`()
    async throws
  {
    // Given: a circuit that is half-open at once
    let origin = try Origin()
    let downloader = try makeBreakingDownloader(after: 1) { $0.breakerOpenTime = .zero }
    let reborn = try await fail(downloader, at: origin, times: 1)
    reborn.route("/held", to: .silence)
    reborn.serve("/good", bytes: body)
    #expect(downloader.figures.circuitsOpen == 1)
    let probe = Task { try await downloader.load(origin.url("/held")) }
    try await eventually("the probe is under way") { reborn.requests(to: "/held") == 1 }
    // Then
    #expect(isCircuitOpen(await downloader.failure(of: origin.url("/good"))))
    // When
    probe.cancel()
    #expect(await probe.result.failure as? ImageError == .cancelled)
    // Then
    #expect(try await downloader.load(origin.url("/good")).file.bytes == body)
    #expect(downloader.figures.circuitsOpen == 0)
  }
}
