// DownloaderTests: tests of Downloader with well-behaved origins.

import Core
import Downloading
import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) struct DownloaderTests {
  private let image = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }

  @Test func `a body arrives complete in a sealed file`() async throws {
    // Given
    let origin = try Origin()
    origin.serve("/a.jpg", bytes: image)
    let downloader = try makeDownloader()
    // When
    let download = try await downloader.load(origin.url("/a.jpg?x=1"))
    // Then
    #expect(download.file.bytes == image)
    #expect(download.origin.status == 200)
    #expect(write(download.file.descriptor, "x", 1) == -1 && errno == EPERM)
    #expect(ftruncate(download.file.descriptor, 1) == -1 && errno == EPERM)
    #expect(fcntl(download.file.descriptor, F_GETFD) & FD_CLOEXEC != 0)
    #expect(origin.received(at: "/a.jpg").map(\.target) == ["/a.jpg?x=1"])
  }

  @Test func `the response headers of the origin are returned`() async throws {
    let origin = try Origin()
    origin.serve(
      "/a", bytes: image, type: "image/png",
      headers: [
        "Cache-Control: max-age=60", "cache-control:public ", "ETag: W/\"x\"", "Age: 7",
        "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT", "Date: Mon, 07 Nov 1994 08:49:37 GMT",
        "Expires: 0", "ETag: \"second\"",
      ])
    var answer = try await makeDownloader().load(origin.url("/a")).origin
    answer.exchange = nil
    var expected = OriginResponse(status: 200)
    expected.contentType = "image/png"
    expected.cacheControl = "max-age=60, public"
    expected.etag = "W/\"x\""
    expected.age = "7"
    expected.lastModified = "Sun, 06 Nov 1994 08:49:37 GMT"
    expected.date = "Mon, 07 Nov 1994 08:49:37 GMT"
    expected.expires = "0"
    #expect(answer == expected)
  }

  @Test func `chunked bodies and bodies that end with the connection arrive complete`()
    async throws
  {
    let origin = try Origin()
    origin.route("/chunked", to: .chunked(image, size: 999, trailers: ["ETag: \"trailer\""]))
    origin.route("/close", to: .untilClose(image))
    let downloader = try makeDownloader()
    let chunked = try await downloader.load(origin.url("/chunked"))
    #expect(chunked.file.bytes == image)
    #expect(chunked.origin.etag == nil)
    #expect(try await downloader.load(origin.url("/close")).file.bytes == image)
  }

  @Test func `one connection is reused for consecutive loads, including errors and redirects`()
    async throws
  {
    let origin = try Origin()
    origin.serve("/a", bytes: image)
    origin.route("/gone", to: .status(404, body: image))
    origin.route("/moved", to: .redirect(to: "/a"))
    let downloader = try makeDownloader()
    for _ in 0..<5 {
      _ = try await downloader.load(origin.url("/a"))
      _ = try await downloader.load(origin.url("/moved"))
    }
    #expect(await downloader.failure(of: origin.url("/none")) == .sourceNotFound(status: 404))
    _ = try await downloader.load(origin.url("/a"))
    #expect(origin.connections == 1)
  }

  @Test func `timings are measured, and a reused connection has none for DNS and connect`()
    async throws
  {
    let origin = try Origin()
    origin.serve("/a", bytes: image)
    let downloader = try makeDownloader()
    let first = try await downloader.load(origin.url("/a")).timings
    #expect(first.queue != nil && first.dns != nil && first.connect != nil)
    #expect(first.tls == nil)
    #expect(try #require(first.ttfb) > .zero && #require(first.download) >= .zero)
    let second = try await downloader.load(origin.url("/a")).timings
    #expect(second.dns == nil && second.connect == nil && second.ttfb != nil)
  }

  @Test func `an IPv6 origin can be loaded`() async throws {
    let origin = try Origin(on: "::1")
    origin.serve("/a", bytes: image)
    #expect(try await makeDownloader().load(origin.url("/a")).file.bytes == image)
  }

  @Test func `hundreds of loads run concurrently on one thread`() async throws {
    // Given: an origin that responds after all requests have arrived
    let origin = try Origin()
    let gate = Gate()
    origin.route("/a", to: .hold(gate, then: .ok(image)))
    let downloader = try makeDownloader {
      $0.limit = 300
      $0.limitPerHost = 300
      // A busy machine needs more than a second to begin them all; a silent host begins no more.
      $0.pace.silentAfter = .seconds(60)
    }
    // When
    let whole = try await withThrowingTaskGroup(of: Bool.self) { group in
      for number in 0..<300 {
        group.addTask {
          try await downloader.load(origin.url("/a?\(number)")).file.bytes == self.image
        }
      }
      try await eventually("all have asked") { origin.activeRequests == 300 }
      gate.open()
      return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
    }
    // Then
    #expect(whole == 300)
    #expect(downloader.figures.succeeded == 300)
    #expect(downloader.figures.running == 0)
    #expect(downloader.figures.bytes == 300 * image.count)
    #expect(downloader.figures.latency.count == 300)
  }

  @Test func `relative and absolute redirects are followed to the body`() async throws {
    let origin = try Origin()
    let other = try Origin()
    origin.route("/1", to: .redirect(to: "2?x=y", status: 301))
    origin.route("/2", to: .redirect(to: "//127.0.0.1:\(origin.port)/3", status: 303))
    origin.route("/3", to: .redirect(to: other.url("/4"), status: 307))
    other.route("/4", to: .redirect(to: other.url("/a b"), status: 308))
    other.serve("/a%20b", bytes: image, headers: ["ETag: \"final\""])
    let download = try await makeDownloader().load(origin.url("/1"))
    #expect(download.file.bytes == image)
    #expect(download.origin.status == 200)
    #expect(download.origin.etag == "\"final\"")
    #expect(origin.received(at: "/2").map(\.target) == ["/2?x=y"])
  }

  @Test func `after shutdown, running, waiting and new loads fail at once`() async throws {
    let origin = try Origin()
    origin.route("/a", to: .silence)
    let downloader = try makeDownloader { $0.limit = 1 }
    async let running = downloader.failure(of: origin.url("/a"))
    try await eventually("the origin was asked") { origin.activeRequests == 1 }
    async let waiting = downloader.failure(of: origin.url("/a"))
    try await eventually("another one waits") { downloader.figures.waiting == 1 }
    downloader.shutDown()
    #expect(await running == .draining)
    #expect(await waiting == .draining)
    #expect(await downloader.failure(of: origin.url("/a")) == .draining)
    downloader.shutDown()
    try await eventually("the connection is closed") { origin.clientsGone == 1 }
  }
}
