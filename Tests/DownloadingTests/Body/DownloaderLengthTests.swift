// DownloaderLengthTests: tests of contradictory body lengths in Downloader.

import Downloading
import Model
import Platform
import TestSupport
import Testing

@Suite(.onOwnThreads) struct DownloaderLengthTests {
  private let body = [UInt8](repeating: 7, count: 60_000)

  /// Loads, and hands over the body as it was offered while it came in.
  private func load(_ url: String) async throws -> (whole: Download, coming: any StreamingBody) {
    let offered = Lock<(any StreamingBody)?>(nil)
    let request = LoadRequest(
      url: try SourceURL(parsing: url), onBody: { body in offered.withLock { $0 = body } })
    guard case .fetched(let download) = try await makeDownloader().load(request) else {
      throw ImageError.internal(detail: "not modified, which nobody asked")
    }
    return (download, try #require(offered.withLock { $0 }))
  }

  @Test(arguments: [
    ["Transfer-Encoding: chunked", "Content-Length: 30000"],
    ["Content-Length: 30000", "Transfer-Encoding: chunked"],
  ])
  func `a body in chunks has no length, whatever Content-Length says`(
    _ headers: [String]
  ) async throws {
    // Given
    let origin = try Origin()
    let chunks = OriginReply.chunk(body) + Array("0\r\n\r\n".utf8)
    origin.route("/a", OriginReply([.send(OriginReply.head(200, headers)), .send(chunks)]))
    // When
    let (whole, coming) = try await load(origin.url("/a"))
    // Then
    #expect(try whole.file.bytes == body)
    #expect(coming.expected == nil)
    #expect(coming.isComplete)
  }

  @Test(arguments: [
    ["Content-Length: 60000", "Content-Length: 30000"],
    ["Content-Length: 30000", "Content-Length: 60000"], ["Content-Length: 30000, 60000"],
    ["Content-Length: 30000x"],
  ])
  func `an answer whose lengths make no sense is refused`(_ headers: [String]) async throws {
    // Given
    let origin = try Origin()
    for (path, status) in [("/200", 200), ("/404", 404), ("/302", 302)] {
      let head = OriginReply.head(status, headers + ["Location: /a"])
      origin.route(path, OriginReply([.send(head), .send(body), .close]))
    }
    origin.serve("/a", body)
    let downloader = try makeDownloader()
    // Then
    for path in ["/200", "/404", "/302"] {
      let failure = await downloader.failure(of: origin.url(path))
      #expect(failure?.code == "source_unreachable", "\(path)")
    }
    // And nothing of it is left in the connection that the next one has.
    #expect(try await downloader.load(origin.url("/a")).file.bytes == body)
  }

  @Test func `one length said more than once is that length`() async throws {
    let origin = try Origin()
    for (path, headers) in [
      ("/two", ["Content-Length: 60000", "Content-Length: 60000"]),
      ("/list", ["Content-Length: 60000, 60000"]),
    ] {
      origin.route(path, OriginReply([.send(OriginReply.head(200, headers)), .send(body)]))
      let (whole, coming) = try await load(origin.url(path))
      #expect(try whole.file.bytes == body)
      #expect(coming.expected == body.count)
    }
  }

  @Test func `more than was promised is a failure`() async throws {
    // Given: a coding that curl reads and that is not valid, so that the length stands
    let origin = try Origin()
    let head = OriginReply.head(
      200, ["Transfer-Encoding: chunked\u{b}", "Content-Length: 30000"])
    let chunks = OriginReply.chunk(body) + Array("0\r\n\r\n".utf8)
    origin.route("/a", OriginReply([.send(head), .send(chunks)]))
    // Then
    let failure = await (try makeDownloader()).failure(of: origin.url("/a"))
    #expect(failure?.code == "source_incomplete")
  }
}
