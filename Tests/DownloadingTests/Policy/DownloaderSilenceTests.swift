// DownloaderSilenceTests: tests of Downloader with silent hosts.

import Core
import Downloading
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
}
