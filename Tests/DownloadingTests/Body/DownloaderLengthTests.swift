// DownloaderLengthTests: tests of contradictory body lengths in Downloader.

import Core
import Downloading
import TestSupport
import Testing

@Suite(.onOwnThreads) struct DownloaderLengthTests {
  private let body = [UInt8](repeating: 7, count: 60_000)

  /// Loads a URL. Returns the complete body and the streaming body offered during the load.
  private func load(_ url: String) async throws -> (whole: Download, coming: any StreamingBody) {
    let offered = Lock<(any StreamingBody)?>(nil)
    let request = LoadRequest(
      url: try SourceURL(parsing: url), onBody: { body in offered.withLock { $0 = body } })
    guard case .fetched(let download) = try await makeDownloader().load(request) else {
      throw ImageError.internal(detail: "an unexpected 304")
    }
    return (download, try #require(offered.withLock { $0 }))
  }

  @Test(arguments: [
    ["Transfer-Encoding: chunked", "Content-Length: 30000"],
    ["Content-Length: 30000", "Transfer-Encoding: chunked"],
  ])
  func `a chunked body has no length, regardless of Content-Length`(
    _ headers: [String]
  ) async throws {
    // Given
    let origin = try Origin()
    let chunks = OriginReply.chunk(body) + Array("0\r\n\r\n".utf8)
    origin.route(
      "/a", to: OriginReply([.send(OriginReply.head(200, headers: headers)), .send(chunks)]))
    // When
    let (whole, coming) = try await load(origin.url("/a"))
    // Then
    #expect(whole.file.bytes == body)
    #expect(coming.expected == nil)
    #expect(coming.isComplete)
  }

  @Test(arguments: [
    ["Content-Length: 60000", "Content-Length: 30000"],
    ["Content-Length: 30000", "Content-Length: 60000"], ["Content-Length: 30000, 60000"],
    ["Content-Length: 30000x"],
  ])
  func `a response with contradictory lengths is refused`(_ headers: [String]) async throws {
    // Given
    let origin = try Origin()
    for (path, status) in [("/200", 200), ("/404", 404), ("/302", 302)] {
      let head = OriginReply.head(status, headers: headers + ["Location: /a"])
      origin.route(path, to: OriginReply([.send(head), .send(body), .close]))
    }
    origin.serve("/a", bytes: body)
    let downloader = try makeDownloader()
    // Then
    for path in ["/200", "/404", "/302"] {
      let failure = await downloader.failure(of: origin.url(path))
      #expect(failure?.code == "source_unreachable", "\(path)")
    }
    // And no byte of it remains on the connection of the next load.
    #expect(try await downloader.load(origin.url("/a")).file.bytes == body)
  }

  @Test func `a body longer than its Content-Length is incomplete`() async throws {
    // Given: an invalid coding that curl accepts, so that the length applies
    let origin = try Origin()
    let head = OriginReply.head(
      200, headers: ["Transfer-Encoding: chunked\u{b}", "Content-Length: 30000"])
    let chunks = OriginReply.chunk(body) + Array("0\r\n\r\n".utf8)
    origin.route("/a", to: OriginReply([.send(head), .send(chunks)]))
    // Then
    let failure = await (try makeDownloader()).failure(of: origin.url("/a"))
    #expect(failure?.code == "source_incomplete")
  }

  @Test func `a 206 with everything is complete only with all of its bytes`() async throws {
    let origin = try Origin()
    let head = OriginReply.head(
      206, headers: ["Content-Range: bytes 0-59999/60000", "Connection: close"])
    origin.route("/a", to: OriginReply([.send(head), .send(body), .close]))
    origin.route("/cut", to: OriginReply([.send(head), .send(Array(body.dropLast())), .close]))
    let downloader = try makeDownloader()
    #expect(try await downloader.load(origin.url("/a")).file.bytes == body)
    #expect(await downloader.failure(of: origin.url("/cut"))?.code == "source_incomplete")
  }

  @Test(
    arguments: [
      ([0xff, 0xd8, 0xff], [0xff, 0xd9]), ([0x89, 0x50, 0x4e, 0x47], Array("IEND".utf8)),
      (Array("GIF89a".utf8), [0, 0x3b]), (Array("RIFF\u{0}\u{0}\u{1}\u{0}WEBP".utf8), []),
    ] as [([UInt8], [UInt8])])
  func `readers never see the end of an image that its Content-Length cuts`(
    start: [UInt8], end: [UInt8]
  ) async throws {
    let origin = try Origin()
    let image = start + [UInt8](repeating: 7, count: 65_536 + 8 - start.count - end.count) + end
    origin.serve("/whole", bytes: image)
    origin.route(
      "/cut",
      to: OriginReply([
        .send(OriginReply.head(200, headers: ["Content-Length: 30000"])), .send(image), .close,
      ]))
    let cut = try await load(origin.url("/cut"))
    #expect(cut.whole.file.bytes == Array(image[..<30_000]))
    let byte = UnsafeMutableRawBufferPointer.allocate(byteCount: 1, alignment: 1)
    defer { byte.deallocate() }
    #expect(!cut.coming.isComplete && cut.coming.read(at: 29_999, into: byte) == .failed)
    let whole = try await load(origin.url("/whole"))
    #expect(
      whole.coming.isComplete && whole.coming.read(at: image.count - 1, into: byte) == .bytes(1))
  }
}
