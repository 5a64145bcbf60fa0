// DownloaderTests: tests of Downloader with well-behaved origins.

import Downloading
import Glibc
import Model
import TestSupport
import Testing

@Suite(.onOwnThreads) struct DownloaderTests {
  private let image = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }

  @Test func `a body arrives whole in a file that cannot be changed`() async throws {
    // Given
    let origin = try Origin()
    origin.serve("/a.jpg", image)
    let downloader = try makeDownloader()
    // When
    let download = try await downloader.load(origin.url("/a.jpg?x=1"))
    // Then
    #expect(try download.file.bytes == image)
    #expect(download.origin.status == 200)
    #expect(write(download.file.descriptor, "x", 1) == -1 && errno == EPERM)
    #expect(ftruncate(download.file.descriptor, 1) == -1 && errno == EPERM)
    #expect(fcntl(download.file.descriptor, F_GETFD) & FD_CLOEXEC != 0)
    #expect(origin.received(at: "/a.jpg").map(\.target) == ["/a.jpg?x=1"])
  }

  @Test func `the origin sees who asks and what is accepted, and nothing else`() async throws {
    let origin = try Origin()
    origin.serve("/a", image, headers: ["Set-Cookie: a=b"])
    let downloader = try makeDownloader { $0.userAgent = "Pictor/1.2" }
    _ = try await downloader.load(origin.url("/a"))
    _ = try await downloader.load(origin.url("/a"))
    let request = try #require(origin.received(at: "/a").last)
    #expect(request.method == "GET")
    #expect(
      request.headers == [
        "host": "127.0.0.1:\(origin.port)", "user-agent": "Pictor/1.2",
        "accept": "image/avif,image/webp,image/*;q=0.8", "accept-encoding": "identity",
      ])
  }

  @Test func `what the origin says of the body comes along`() async throws {
    let origin = try Origin()
    origin.serve(
      "/a", image, type: "image/png",
      headers: [
        "Cache-Control: max-age=60", "cache-control:public ", "ETag: W/\"x\"", "Age: 7",
        "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT", "Date: Mon, 07 Nov 1994 08:49:37 GMT",
        "Expires: 0", "ETag: \"second\"",
      ])
    let answer = try await makeDownloader().load(origin.url("/a")).origin
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

  @Test func `bodies in chunks and bodies that end with the connection arrive whole`()
    async throws
  {
    let origin = try Origin()
    origin.route("/chunked", .chunked(image, size: 999, trailers: ["ETag: \"trailer\""]))
    origin.route("/close", .untilClose(image))
    let downloader = try makeDownloader()
    let chunked = try await downloader.load(origin.url("/chunked"))
    #expect(try chunked.file.bytes == image)
    #expect(chunked.origin.etag == nil)
    #expect(try await downloader.load(origin.url("/close")).file.bytes == image)
  }

  @Test func `interim answers leave nothing behind`() async throws {
    let origin = try Origin()
    let early = Array("HTTP/1.1 103 Early Hints\r\nETag: \"early\"\r\n\r\n".utf8)
    origin.route("/a", OriginReply([.send(early)] + OriginReply.ok(image).steps))
    let download = try await makeDownloader().load(origin.url("/a"))
    #expect(download.origin.status == 200)
    #expect(download.origin.etag == nil)
    #expect(try download.file.bytes == image)
  }

  @Test func `203 is as good as 200`() async throws {
    let origin = try Origin()
    origin.route("/a", .status(203, image))
    #expect(try await makeDownloader().load(origin.url("/a")).origin.status == 203)
  }

  @Test func `one connection serves one load after the other, errors and redirects included`()
    async throws
  {
    let origin = try Origin()
    origin.serve("/a", image)
    origin.route("/gone", .status(404, image))
    origin.route("/moved", .redirect(to: "/a"))
    let downloader = try makeDownloader()
    for _ in 0..<5 {
      _ = try await downloader.load(origin.url("/a"))
      _ = try await downloader.load(origin.url("/moved"))
    }
    #expect(await downloader.failure(of: origin.url("/none")) == .sourceNotFound(status: 404))
    _ = try await downloader.load(origin.url("/a"))
    #expect(origin.connections == 1)
  }

  @Test func `times are measured, and a connection used again took none to make`() async throws {
    let origin = try Origin()
    origin.serve("/a", image)
    let downloader = try makeDownloader()
    let first = try await downloader.load(origin.url("/a")).timings
    #expect(first.queue != nil && first.dns != nil && first.connect != nil)
    #expect(first.tls == nil)
    #expect(try #require(first.ttfb) > .zero && #require(first.download) >= .zero)
    let second = try await downloader.load(origin.url("/a")).timings
    #expect(second.dns == nil && second.connect == nil && second.ttfb != nil)
  }

  @Test func `IPv6 origins are reached, too`() async throws {
    let origin = try Origin(on: "::1")
    origin.serve("/a", image)
    #expect(try await makeDownloader().load(origin.url("/a")).file.bytes == image)
  }

  @Test func `hundreds of loads run at once on one thread`() async throws {
    // Given: an origin that responds after all requests have arrived
    let origin = try Origin()
    let gate = Gate()
    origin.route("/a", .hold(gate, then: .ok(image)))
    let downloader = try makeDownloader {
      $0.limit = 300
      $0.limitPerHost = 300
    }
    // When
    let whole = try await withThrowingTaskGroup(of: Bool.self) { group in
      for number in 0..<300 {
        group.addTask {
          try await downloader.load(origin.url("/a?\(number)")).file.bytes == self.image
        }
      }
      await eventually("all have asked") { origin.activeRequests == 300 }
      gate.open()
      return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
    }
    // Then
    #expect(whole == 300)
    #expect(downloader.figures.succeeded == 300)
    #expect(downloader.figures.running == 0)
    #expect(downloader.figures.bytes == 300 * image.count)
    #expect(downloader.figures.latency?.count == 300)
  }

  @Test func `redirects are followed, relative and absolute, to where the body is`() async throws {
    let origin = try Origin()
    let other = try Origin()
    origin.route("/1", .redirect(to: "2?x=y", status: 301))
    origin.route("/2", .redirect(to: "//127.0.0.1:\(origin.port)/3", status: 303))
    origin.route("/3", .redirect(to: other.url("/4"), status: 307))
    other.route("/4", .redirect(to: other.url("/a b"), status: 308))
    other.serve("/a%20b", image, headers: ["ETag: \"final\""])
    let download = try await makeDownloader().load(origin.url("/1"))
    #expect(try download.file.bytes == image)
    #expect(download.origin.status == 200)
    #expect(download.origin.etag == "\"final\"")
    #expect(origin.received(at: "/2").map(\.target) == ["/2?x=y"])
  }

  @Test func `after shutting down loads fail, running ones at once`() async throws {
    let origin = try Origin()
    origin.route("/a", .silence)
    let downloader = try makeDownloader()
    async let running = downloader.failure(of: origin.url("/a"))
    await eventually("the origin was asked") { origin.activeRequests == 1 }
    downloader.shutDown()
    #expect(await running == .draining)
    #expect(await downloader.failure(of: origin.url("/a")) == .draining)
    downloader.shutDown()
    await eventually("the connection is closed") { origin.clientsGone == 1 }
  }
}
