// RevalidationTests: tests of conditional requests and 304 responses.

import Core
import Downloading
import TestSupport
import Testing

@Suite(.onOwnThreads) struct RevalidationTests {
  private let body: [UInt8] = [1, 2, 3]
  private let date = "Sun, 06 Nov 1994 08:49:37 GMT"

  @Test func `a 304 returns the header fields of the origin`() async throws {
    // Given
    let origin = try Origin()
    let fields = [
      "Cache-Control: max-age=60", "ETag: \"x\"", "Age: 7", "Expires: 0", "Date: \(date)",
      "Last-Modified: \(date)",
    ]
    // The length in a 304 is that of the body that was not sent (RFC 9110, section 8.6).
    let head = OriginReply.head(304, headers: fields + ["Content-Length: 5000"])
    origin.route("/a", to: OriginReply([.send(head)]))
    let downloader = try makeDownloader()
    // When
    let sent = try validators(etag: "\"x\"", lastModified: date)
    var answer = try #require(await downloader.revalidate(origin.url("/a"), with: sent))
    answer.exchange = nil
    // Then
    var expected = OriginResponse(status: 304)
    expected.cacheControl = "max-age=60"
    expected.etag = "\"x\""
    expected.age = "7"
    expected.expires = "0"
    expected.date = date
    expected.lastModified = date
    #expect(answer == expected)
    let headers = try #require(origin.received(at: "/a").first).headers
    #expect(headers["if-none-match"] == "\"x\"" && headers["if-modified-since"] == date)
    #expect(downloader.figures.succeeded == 1 && downloader.figures.bytes == 0)
    // The connection stays open.
    _ = try await downloader.revalidate(origin.url("/a"), with: sent)
    #expect(origin.connections == 1)
  }

  @Test func `a changed image is fetched`() async throws {
    let origin = try Origin()
    origin.serve("/a", bytes: body, headers: ["ETag: \"y\""])
    let request = LoadRequest(
      url: try SourceURL(parsing: origin.url("/a")), validators: try validators(etag: "W/\"x\""))
    guard case .fetched(let download) = try await makeDownloader().load(request) else {
      Issue.record("not fetched")
      return
    }
    #expect(download.file.bytes == body)
    #expect(download.origin.etag == "\"y\"")
    #expect(origin.received(at: "/a").first?.headers["if-none-match"] == "W/\"x\"")
    #expect(origin.received(at: "/a").first?.headers["if-modified-since"] == nil)
  }

  @Test func `a redirect keeps If-None-Match and drops If-Modified-Since`() async throws {
    // Given
    let origin = try Origin()
    let other = try Origin()
    origin.route("/a", to: .redirect(to: other.url("/b")))
    other.route("/b", to: .status(304))
    // When
    let sent = try validators(etag: "\"x\"", lastModified: date)
    var answer = try #require(await makeDownloader().revalidate(origin.url("/a"), with: sent))
    // Then each request has times of its own
    let exchanges = (answer.redirects + [answer]).compactMap(\.exchange)
    try #require(exchanges.count == 2)
    let times = exchanges.flatMap { [$0.requestedAt, $0.receivedAt] }
    #expect(times == times.sorted())
    answer.exchange = nil
    answer.redirects[0].exchange = nil
    var expected = OriginResponse(status: 304)
    expected.redirects = [OriginResponse(status: 302)]
    #expect(answer == expected)
    let first = origin.received(at: "/a")[0].headers
    let second = other.received(at: "/b")[0].headers
    #expect(first["if-none-match"] == "\"x\"" && first["if-modified-since"] == date)
    #expect(second["if-none-match"] == "\"x\"" && second["if-modified-since"] == nil)
    #expect(second["accept"] == first["accept"])
  }

  @Test func `validators that are invalid field values are not sent`() async throws {
    let origin = try Origin()
    origin.serve("/a", bytes: body)
    let request = LoadRequest(
      url: try SourceURL(parsing: origin.url("/a")),
      validators: try validators(etag: "\"x\"\r\nX-Evil: 1", lastModified: ""))
    _ = try await makeDownloader().load(request)
    let headers = try #require(origin.received(at: "/a").first).headers
    #expect(headers.keys.sorted() == ["accept", "accept-encoding", "host", "user-agent"])
  }
}
