// DownloaderFailureTests: tests of Downloader with faulty origins.

import Downloading
import Model
import TestSupport
import Testing

@Suite(.onOwnThreads) struct DownloaderFailureTests {
  private let body = [UInt8](repeating: 7, count: 50_000)

  @Test(arguments: [404, 410])
  func `not found and gone are not found`(_ status: Int) async throws {
    let origin = try Origin()
    origin.route("/a", .status(status, body))
    let failure = try await makeDownloader().failure(of: origin.url("/a"))
    #expect(failure == .sourceNotFound(status: status))
  }

  @Test(arguments: [201, 204, 206, 300, 304, 400, 401, 403, 429, 500, 503])
  func `any other status than 200 is an error`(_ status: Int) async throws {
    let origin = try Origin()
    let hasBody = status != 204 && status != 304
    origin.route("/a", .status(status, hasBody ? body : []))
    let failure = try await makeDownloader().failure(of: origin.url("/a"))
    #expect(failure == .sourceError(status: status))
  }

  @Test func `an error keeps its status however its body ends`() async throws {
    let origin = try Origin()
    let head = OriginReply.head(404, ["Transfer-Encoding: chunked"])
    let chunk = OriginReply.chunk(body)
    origin.route("/endless", OriginReply([.send(head), .sendForever(chunk)]))
    origin.route("/cut", OriginReply([.send(head), .send(chunk), .close]))
    let downloader = try makeDownloader()
    for path in ["/endless", "/cut"] {
      #expect(await downloader.failure(of: origin.url(path)) == .sourceNotFound(status: 404))
    }
    #expect(downloader.figures.failed == ["source_not_found": 2])
    #expect(downloader.figures.bytes == 0)
  }

  @Test func `a body shorter than declared is incomplete, however it is cut`() async throws {
    let origin = try Origin()
    origin.route("/length", .truncated(body, declaring: body.count + 1))
    origin.route("/chunks", .truncatedChunked(body))
    origin.route("/reset", .reset(after: body, declaring: body.count * 2))
    let garbled = OriginReply.chunkedHead + OriginReply.chunk(body) + Array("zz\r\nxx".utf8)
    origin.route("/garbled", .raw(garbled))
    let downloader = try makeDownloader()
    for path in ["/length", "/chunks", "/reset", "/garbled"] {
      let failure = await downloader.failure(of: origin.url(path))
      #expect(failure?.code == "source_incomplete", "\(path): \(String(describing: failure))")
    }
  }

  @Test func `an origin that does not answer, or not in HTTP, is unreachable`() async throws {
    let origin = try Origin()
    origin.route("/reset", .resetBeforeHead)
    origin.route("/close", .closeBeforeHead)
    origin.route("/nonsense", .raw(Array("hello, I am no web server\r\n\r\n".utf8)))
    origin.route("/half", .raw(Array("HTTP/1.1 200 OK\r\nContent-Ty".utf8)))
    origin.route("/headers", .endlessHeaders)
    let line = "HTTP/1.1 200 OK\r\nX-Long: " + String(repeating: "x", count: 200_000)
    origin.route("/line", .raw(Array(line.utf8)))
    let nobody = try Origin()
    let refused = nobody.url("/a")
    nobody.stop()
    let downloader = try makeDownloader()
    let urls =
      ["/reset", "/close", "/nonsense", "/half", "/headers", "/line"].map { origin.url($0) }
      + [refused, "http://nobody.invalid/a"]
    for url in urls {
      let failure = await downloader.failure(of: url)
      #expect(failure?.code == "source_unreachable", "\(url): \(String(describing: failure))")
      #expect(failure?.logDetail != nil)
    }
  }

  @Test func `headers may be as large as allowed and no larger`() async throws {
    let origin = try Origin()
    let filler = "X-Filler: " + String(repeating: "a", count: 3_000)
    origin.serve("/a", body, headers: [filler])
    #expect(
      try await makeDownloader { $0.maximumHeaderBytes = 2_000 }
        .failure(of: origin.url("/a"))?.code == "source_unreachable")
    _ = try await makeDownloader { $0.maximumHeaderBytes = 4_000 }.load(origin.url("/a"))
  }

  @Test func `slow origins time out: before, in and between the bytes, and in redirects`()
    async throws
  {
    let origin = try Origin()
    let deaf = try Origin(answers: false)
    let gate = Gate()
    defer { gate.open() }
    origin.route("/silence", .silence)
    origin.route("/middle", .ok(body, holdingAfter: 10, at: gate))
    origin.route("/trickle", .trickle(body, milliseconds: 5))
    origin.route("/moved", .redirect(to: "/silence"))
    let head = OriginReply.head(302, ["Location: /x", "Content-Length: 9"])
    origin.route("/held", OriginReply([.send(head), .silence]))
    let downloader = try makeDownloader { $0.timeout = .milliseconds(300) }
    let urls =
      ["/silence", "/middle", "/trickle", "/moved", "/held"].map { origin.url($0) }
      + [deaf.url("/a")]
    await withTaskGroup(of: Void.self) { group in
      for url in urls {
        group.addTask {
          let failure = await downloader.failure(of: url)
          #expect(failure?.code == "source_timeout", "\(url): \(String(describing: failure))")
        }
      }
    }
    #expect(downloader.figures.failed == ["source_timeout": urls.count])
  }

  @Test func `a transfer that hardly moves is given up before its time`() async throws {
    let origin = try Origin()
    origin.route("/trickle", .trickle(body, milliseconds: 50))
    let downloader = try makeDownloader {
      $0.timeout = .seconds(3_600)
      $0.lowSpeedTime = .seconds(1)
    }
    #expect(await downloader.failure(of: origin.url("/trickle"))?.code == "source_timeout")
  }

  @Test func `a body larger than allowed is refused: by its length, and by its bytes`()
    async throws
  {
    let origin = try Origin()
    let head = OriginReply.head(200, ["Content-Length: 10001"])
    origin.route("/declared", OriginReply([.send(head), .silence]))
    origin.route("/huge", .truncated([], declaring: .max))
    origin.route("/chunked", .chunked([UInt8](repeating: 1, count: 10_001), size: 100))
    origin.route("/endless", .endlessBody)
    origin.route("/fits", .chunked([UInt8](repeating: 1, count: 10_000), size: 100))
    let downloader = try makeDownloader { $0.maximumBytes = 10_000 }
    for path in ["/declared", "/huge", "/chunked", "/endless"] {
      let failure = await downloader.failure(of: origin.url(path))
      #expect(failure == .sourceTooLarge(limit: 10_000), "\(path)")
    }
    #expect(try await downloader.load(origin.url("/fits")).file.count == 10_000)
  }

  @Test func `bodies larger together than allowed are refused, and the room is given back`()
    async throws
  {
    // Given: one body that holds most of the room
    let origin = try Origin()
    let gate = Gate()
    origin.route("/held", .ok(body, holdingAfter: 40_000, at: gate))
    origin.serve("/a", body)
    let downloader = try makeDownloader { $0.maximumBytesInFlight = 60_000 }
    async let held = downloader.load(origin.url("/held"))
    // When
    await eventually("there is no room") {
      origin.requests(to: "/held") == 1
    }
    var failure: ImageError?
    for _ in 0..<1_000 where failure == nil {
      do {
        _ = try await downloader.load(origin.url("/a"))
      } catch {
        failure = error as? ImageError
      }
    }
    // Then
    #expect(failure == .overloaded(queue: "download", retryAfter: 1))
    gate.open()
    #expect(try await held.file.count == body.count)
    #expect(try await downloader.load(origin.url("/a")).file.count == body.count)
  }

  @Test func `an empty body is no image`() async throws {
    let origin = try Origin()
    origin.serve("/length", [])
    origin.route("/chunked", .chunked([], size: 1))
    let downloader = try makeDownloader()
    for path in ["/length", "/chunked"] {
      let failure = await downloader.failure(of: origin.url(path))
      #expect(failure == .unsupportedFormat(detail: "empty body"))
    }
  }

  @Test func `redirects end somewhere, or are too many`() async throws {
    let origin = try Origin()
    for number in 0..<7 { origin.route("/\(number)", .redirect(to: "/\(number + 1)")) }
    origin.serve("/7", body)
    origin.route("/loop", .redirect(to: "/loop"))
    let downloader = try makeDownloader()
    #expect(await downloader.failure(of: origin.url("/loop")) == .tooManyRedirects(limit: 5))
    #expect(origin.requests(to: "/loop") == 6)
    #expect(await downloader.failure(of: origin.url("/1")) == .tooManyRedirects(limit: 5))
    #expect(try await downloader.load(origin.url("/2")).file.bytes == body)
    let strict = try makeDownloader { $0.maximumRedirects = 0 }
    #expect(await strict.failure(of: origin.url("/2")) == .tooManyRedirects(limit: 0))
    #expect(try await strict.load(origin.url("/7")).file.bytes == body)
  }

  @Test func `a redirect is followed however its body ends`() async throws {
    let origin = try Origin()
    let chunk = OriginReply.chunk(body)
    let head = OriginReply.head(302, ["Location: /there", "Transfer-Encoding: chunked"])
    origin.route("/endless", OriginReply([.send(head), .sendForever(chunk)]))
    origin.route("/cut", OriginReply([.send(head), .send(chunk), .close]))
    origin.serve("/there", body)
    let downloader = try makeDownloader()
    for path in ["/endless", "/cut"] {
      #expect(try await downloader.load(origin.url(path)).file.bytes == body)
    }
  }

  @Test func `a redirect to nowhere is an error of the origin's`() async throws {
    let origin = try Origin()
    origin.route("/a", .status(302, body))
    let failure = try await makeDownloader().failure(of: origin.url("/a"))
    #expect(failure == .sourceError(status: 302))
  }
}
