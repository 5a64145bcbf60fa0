// DownloaderPaceTests: tests of Downloader with hosts that send slowly.

import Core
import Downloading
import TestSupport
import Testing

@Suite(.onOwnThreads) struct DownloaderPaceTests {
  private let body = [UInt8](repeating: 9, count: 1_000)
  /// Enough bytes to last for the whole test, at one byte each five milliseconds.
  private let drips = OriginReply.trickle([UInt8](repeating: 1, count: 100_000), milliseconds: 5)

  private func downloader(
    _ change: (inout DownloaderConfiguration) -> Void
  ) throws -> Downloader {
    try makeDownloader {
      $0.pace.window = .milliseconds(100)
      $0.lowSpeedTime = .seconds(60)
      change(&$0)
    }
  }

  @Test func `64 dripping downloads delay no other download`() async throws {
    // Given: as many as may run at once
    let hosts = try (0..<16).map { _ in try Origin() }
    for host in hosts { for name in 0..<4 { host.route("/\(name)", to: drips) } }
    let other = try Origin()
    other.serve("/a", bytes: body)
    let downloader = try downloader { $0.limit = 64 }
    let held = hosts.flatMap { host in
      (0..<4).map { name in Task { try await downloader.load(host.url("/\(name)")) } }
    }
    try await eventually("all drip") { hosts.allSatisfy { $0.activeRequests == 4 } }
    // Then
    #expect(try await downloader.load(other.url("/a")).file.count == body.count)
    try await eventually("all are slow") { downloader.figures.slow == 64 }
    #expect(downloader.figures.givenUp == 0)
    for task in held { task.cancel() }
    for task in held { _ = await task.result }
    #expect(downloader.figures.slow == 0)
  }

  @Test func `a slow download is delivered, and may become fast again`() async throws {
    // Given
    let (slow, gate) = (try Origin(), Gate())
    slow.route("/s", to: .ok(body, holdingAfter: 10, at: gate))
    let downloader = try downloader { $0.limit = 1 }
    let load = Task { try await downloader.load(slow.url("/s")) }
    try await eventually("it is slow") { downloader.figures.slow == 1 }
    // When
    gate.open()
    // Then
    #expect(try await load.value.file.bytes == body)
    #expect(downloader.figures.slow == 0 && downloader.figures.givenUp == 0)
  }

  @Test func `a slow host gets no more connections than any other host`() async throws {
    let (slow, other) = (try Origin(), try Origin())
    for name in 0..<3 { slow.route("/\(name)", to: drips) }
    other.serve("/a", bytes: body)
    let downloader = try downloader {
      $0.limit = 2
      $0.limitPerHost = 2
    }
    let held = (0..<3).map { name in Task { try await downloader.load(slow.url("/\(name)")) } }
    try await eventually("both are slow") { downloader.figures.slow == 2 }
    _ = try await downloader.load(other.url("/a"))
    #expect(slow.totalRequests == 2 && downloader.figures.waiting == 1)
    for task in held { task.cancel() }
    for task in held { _ = await task.result }
  }

  @Test func `beyond the limit of stalled downloads, one ends with 503 for another that waits`()
    async throws
  {
    // Given: two places, for one fast and one stalled download
    let hosts = [try Origin(), try Origin()]
    for host in hosts { host.route("/s", to: drips) }
    let other = try Origin()
    other.serve("/a", bytes: body)
    let downloader = try downloader {
      $0.limit = 1
      $0.silentLimit = 1
    }
    let first = Task { try await downloader.load(hosts[0].url("/s")) }
    try await eventually("the first is slow") { downloader.figures.slow == 1 }
    let second = Task { try await downloader.load(hosts[1].url("/s")) }
    try await eventually("both are slow") { downloader.figures.slow == 2 }
    // When
    #expect(try await downloader.load(other.url("/a")).file.count == body.count)
    // Then
    let failure = await first.result.failure as? ImageError
    #expect(failure?.code == "overloaded" && failure?.status == 503)
    #expect(downloader.figures.givenUp == 1 && downloader.figures.slow == 1)
    second.cancel()
    _ = await second.result
  }

  @Test func `the body of a redirect may drip, too`() async throws {
    // Given: a redirect whose body never ends
    let (slow, other) = (try Origin(), try Origin())
    let head = OriginReply.head(302, headers: ["Location: /b", "Content-Length: 100000"])
    slow.route("/r", to: OriginReply([.send(head)] + [.silence]))
    other.serve("/a", bytes: body)
    let downloader = try downloader { $0.limit = 1 }
    let held = Task { try await downloader.load(slow.url("/r")) }
    try await eventually("it is asked") { slow.activeRequests == 1 }
    // Then
    #expect(try await downloader.load(other.url("/a")).file.count == body.count)
    #expect(downloader.figures.slow == 1)
    held.cancel()
    _ = await held.result
  }
}
