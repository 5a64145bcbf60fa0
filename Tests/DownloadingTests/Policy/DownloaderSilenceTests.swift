// DownloaderSilenceTests: tests of Downloader with silent hosts.

import Downloading
import Model
import TestSupport
import Testing

@Suite(.onOwnThreads) struct DownloaderSilenceTests {
  private let body = [UInt8](repeating: 9, count: 1_000)

  @Test func `a silent host releases its slot to other loads`() async throws {
    // Given
    let (silent, other) = (try Origin(), try Origin())
    silent.route("/silent", to: .silence)
    other.serve("/a", bytes: body)
    let downloader = try makeDownloader {
      $0.limit = 1
      $0.pace.silentAfter = .milliseconds(50)
    }
    let held = Task { try await downloader.load(silent.url("/silent")) }
    try await eventually("the place is taken") { silent.activeRequests == 1 }
    // Then
    #expect(try await downloader.load(other.url("/a")).file.count == body.count)
    #expect(downloader.figures.silent == 1)
    held.cancel()
    _ = await held.result
    #expect(downloader.figures.silent == 0)
  }

  @Test func `one silent URL does not hold up its host while it sends another image`()
    async throws
  {
    // Given
    let (host, gate) = (try Origin(), Gate())
    host.route("/long", to: .ok(body, holdingAfter: 1, at: gate))
    host.route("/silent", to: .silence)
    host.serve("/a", bytes: body)
    let downloader = try makeDownloader {
      $0.pace.silentAfter = .milliseconds(50)
      $0.pace.window = .seconds(60)
      $0.lowSpeedTime = .seconds(60)
    }
    let long = Task { try await downloader.load(host.url("/long")) }
    try await eventually("its body has begun") { downloader.downloads().first?.received == 1 }
    // When
    let silent = Task { try await downloader.load(host.url("/silent")) }
    try await eventually("the other one is silent") { downloader.figures.silent == 1 }
    // Then
    #expect(try await downloader.load(host.url("/a")).file.bytes == body)
    #expect(downloader.figures.silent == 1)
    gate.open()
    #expect(try await long.value.file.bytes == body)
    silent.cancel()
    _ = await silent.result
  }

  @Test func `one silent URL does not hold up a host that has just sent an image`() async throws {
    // Given
    let host = try Origin()
    host.route("/silent", to: .silence)
    host.serve("/a", bytes: body)
    host.serve("/b", bytes: body)
    let downloader = try makeDownloader {
      $0.pace.silentAfter = .milliseconds(50)
      $0.aliveAfterResponse = .seconds(60)
      $0.lowSpeedTime = .seconds(60)
    }
    _ = try await downloader.load(host.url("/a"))
    // When
    let silent = Task { try await downloader.load(host.url("/silent")) }
    try await eventually("it is silent") { downloader.figures.silent == 1 }
    // Then
    #expect(try await downloader.load(host.url("/b")).file.bytes == body)
    #expect(downloader.figures.silent == 1)
    silent.cancel()
    _ = await silent.result
  }

  @Test func `a host that has responded is not silent during a retry`() async throws {
    // Given: a host that is overloaded once and does not respond the next time
    let (busy, other) = (try Origin(), try Origin())
    busy.route("/r") {
      $0.number == 1 ? .status(503, headers: ["Retry-After: 0"]) : .silence
    }
    busy.serve("/a", bytes: body)
    other.serve("/b", bytes: body)
    let downloader = try makeDownloader {
      $0.limit = 1
      $0.retries = 1
      $0.retryDelay = .milliseconds(5)
      $0.pace.silentAfter = .milliseconds(50)
      $0.lowSpeedTime = .seconds(60)
    }
    let held = Task { try await downloader.load(busy.url("/r")) }
    try await eventually("it is asked again") { busy.requests(to: "/r") == 2 }
    // When another host's load got the slot
    _ = try await downloader.load(other.url("/b"))
    // Then
    #expect(try await downloader.load(busy.url("/a")).file.count == body.count)
    held.cancel()
    _ = await held.result
  }

  @Test func `a host that redirects to a silent host is not silent`() async throws {
    // Given: a host that redirects to an unresponsive target, and only one slot
    let redirector = try Origin()
    let target = try Origin()
    let other = try Origin()
    redirector.route("/r", to: .redirect(to: target.url("/silent")))
    redirector.serve("/a", bytes: body)
    target.route("/silent", to: .silence)
    other.serve("/b", bytes: body)
    let downloader = try makeDownloader {
      $0.limit = 1
      $0.pace.silentAfter = .milliseconds(50)
      // Only the target's response would end the load, and only that would free its host.
      $0.lowSpeedTime = .seconds(60)
    }
    let held = Task { try await downloader.load(redirector.url("/r")) }
    try await eventually("the place is taken") { target.activeRequests == 1 }
    // When another host's load got the slot, the target counts as silent
    _ = try await downloader.load(other.url("/b"))
    // Then
    #expect(try await downloader.load(redirector.url("/a")).file.count == body.count)
    held.cancel()
    _ = await held.result
  }
}
