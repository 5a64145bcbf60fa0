// RevalidationTests: tests of conditional requests and 304 responses.

import Downloading
import Model
import TestSupport
import Testing

@Suite(.onOwnThreads) struct RevalidationTests {
  private let body: [UInt8] = [1, 2, 3]
  private let date = "Sun, 06 Nov 1994 08:49:37 GMT"

  @Test func `an origin whose image is the same says so, with its header fields`() async throws {
    // Given
    let origin = try Origin()
    let fields = [
      "Cache-Control: max-age=60", "ETag: \"x\"", "Age: 7", "Expires: 0", "Date: \(date)",
      "Last-Modified: \(date)",
    ]
    // A length in it is that of the body that was not sent (RFC 9110, section 8.6).
    let head = OriginReply.head(304, fields + ["Content-Length: 5000"])
    origin.route("/a", OriginReply([.send(head)]))
    let downloader = try makeDownloader()
    // When
    let sent = try validators(etag: "\"x\"", lastModified: date)
    let answer = try await downloader.revalidate(origin.url("/a"), sent)
    // Then
    var expected = OriginResponse(status: 304)
    (expected.cacheControl, expected.etag, expected.age) = ("max-age=60", "\"x\"", "7")
    (expected.expires, expected.date, expected.lastModified) = ("0", date, date)
    #expect(answer == expected)
    let headers = try #require(origin.received(at: "/a").first).headers
    #expect(headers["if-none-match"] == "\"x\"" && headers["if-modified-since"] == date)
    #expect(downloader.figures.succeeded == 1 && downloader.figures.bytes == 0)
    // The connection serves on.
    _ = try await downloader.revalidate(origin.url("/a"), sent)
    #expect(origin.connections == 1)
  }

  @Test func `one that has another image sends it`() async throws {
    let origin = try Origin()
    origin.serve("/a", body, headers: ["ETag: \"y\""])
    let request = LoadRequest(
      url: try SourceURL(parsing: origin.url("/a")), validators: try validators(etag: "W/\"x\""))
    guard case .fetched(let download) = try await makeDownloader().load(request) else {
      Issue.record("not fetched")
      return
    }
    #expect(try download.file.bytes == body)
    #expect(download.origin.etag == "\"y\"")
    #expect(origin.received(at: "/a").first?.headers["if-none-match"] == "W/\"x\"")
    #expect(origin.received(at: "/a").first?.headers["if-modified-since"] == nil)
  }

  @Test func `a redirect takes the ETag along and leaves the date`() async throws {
    // Given
    let origin = try Origin()
    let other = try Origin()
    origin.route("/a", .redirect(to: other.url("/b")))
    other.route("/b", .status(304))
    // When
    let sent = try validators(etag: "\"x\"", lastModified: date)
    let answer = try await makeDownloader().revalidate(origin.url("/a"), sent)
    // Then
    var expected = OriginResponse(status: 304)
    expected.redirects = [OriginResponse(status: 302)]
    #expect(answer == expected)
    let (first, second) = (
      origin.received(at: "/a")[0].headers, other.received(at: "/b")[0].headers
    )
    #expect(first["if-none-match"] == "\"x\"" && first["if-modified-since"] == date)
    #expect(second["if-none-match"] == "\"x\"" && second["if-modified-since"] == nil)
    #expect(second["accept"] == first["accept"])
  }

  @Test func `validators that are no field values are not sent`() async throws {
    let origin = try Origin()
    origin.serve("/a", body)
    let request = LoadRequest(
      url: try SourceURL(parsing: origin.url("/a")),
      validators: try validators(etag: "\"x\"\r\nX-Evil: 1", lastModified: ""))
    _ = try await makeDownloader().load(request)
    let headers = try #require(origin.received(at: "/a").first).headers
    #expect(headers.keys.sorted() == ["accept", "accept-encoding", "host", "user-agent"])
  }

  @Test func `a 304 that nobody asked for is an error`() async throws {
    let origin = try Origin()
    origin.route("/a", .status(304))
    let failure = try await makeDownloader().failure(of: origin.url("/a"))
    #expect(failure == .sourceError(status: 304))
  }

  @Test func `errors are errors, validators or not`() async throws {
    let origin = try Origin()
    let request = LoadRequest(
      url: try SourceURL(parsing: origin.url("/none")), validators: try validators(etag: "\"x\""))
    let downloader = try makeDownloader()
    await #expect(throws: ImageError.sourceNotFound(status: 404)) {
      _ = try await downloader.load(request)
    }
  }
}
