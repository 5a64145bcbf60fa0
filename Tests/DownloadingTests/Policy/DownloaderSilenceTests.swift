// DownloaderSilenceTests: tests of Downloader with silent hosts.

import Downloading
import Model
import TestSupport
import Testing

@Suite(.onOwnThreads) struct DownloaderSilenceTests {
  private let body = [UInt8](repeating: 9, count: 1_000)

  @Test func `a silent host gives its place to others`() async throws {
    // Given
    let (silent, other) = (try Origin(), try Origin())
    silent.route("/silent", .silence)
    other.serve("/a", body)
    let downloader = try makeDownloader {
      $0.limit = 1
      $0.silentAfter = .milliseconds(50)
    }
    let held = Task { try await downloader.load(silent.url("/silent")) }
    await eventually("the place is taken") { silent.activeRequests == 1 }
    // Then
    #expect(try await downloader.load(other.url("/a")).file.count == body.count)
    #expect(downloader.figures.silent == 1)
    held.cancel()
    _ = await held.result
    #expect(downloader.figures.silent == 0)
  }

  @Test func `who answered is not taken for silent while it is asked again`() async throws {
    // Given: a host that was busy for a moment and says nothing the next time
    let (busy, other) = (try Origin(), try Origin())
    busy.route("/r") {
      $0.number == 1 ? .status(503, headers: ["Retry-After: 0"]) : .silence
    }
    busy.serve("/a", body)
    other.serve("/b", body)
    let downloader = try makeDownloader {
      $0.limit = 1
      $0.retries = 1
      $0.retryDelay = .milliseconds(5)
      $0.silentAfter = .milliseconds(50)
      $0.lowSpeedTime = .seconds(60)
    }
    let held = Task { try await downloader.load(busy.url("/r")) }
    await eventually("it is asked again") { busy.requests(to: "/r") == 2 }
    // When another host's load got the place
    _ = try await downloader.load(other.url("/b"))
    // Then
    #expect(try await downloader.load(busy.url("/a")).file.count == body.count)
    held.cancel()
    _ = await held.result
  }

  @Test func `who redirects to a silent host is not taken for silent`() async throws {
    // Given: a redirector whose target says nothing, and only one place
    let (redirector, target, other) = (try Origin(), try Origin(), try Origin())
    redirector.route("/r", .redirect(to: target.url("/silent")))
    redirector.serve("/a", body)
    target.route("/silent", .silence)
    other.serve("/b", body)
    let downloader = try makeDownloader {
      $0.limit = 1
      $0.silentAfter = .milliseconds(50)
      // Nothing but the target's answer would end the load, and nothing else free its host.
      $0.lowSpeedTime = .seconds(60)
    }
    let held = Task { try await downloader.load(redirector.url("/r")) }
    await eventually("the place is taken") { target.activeRequests == 1 }
    // When another host's load got the place: the target's silence is known
    _ = try await downloader.load(other.url("/b"))
    // Then
    #expect(try await downloader.load(redirector.url("/a")).file.count == body.count)
    held.cancel()
    _ = await held.result
  }
}
