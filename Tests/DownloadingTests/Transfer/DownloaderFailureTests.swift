// DownloaderFailureTests: tests of Downloader with faulty origins.

import Core
import Downloading
import TestSupport
import Testing

@Suite(.onOwnThreads) struct DownloaderFailureTests {
  private let body = [UInt8](repeating: 7, count: 50_000)

  @Test(arguments: [404, 410])
  func `404 and 410 are reported as source_not_found`(_ status: Int) async throws {
    let origin = try Origin()
    origin.route("/a", to: .status(status, body: body))
    let failure = try await makeDownloader().failure(of: origin.url("/a"))
    #expect(failure == .sourceNotFound(status: status))
  }

  @Test(arguments: [204, 206, 300, 304, 400, 401, 403, 429, 500, 503])
  func `any status other than 200 and 203 is an error`(_ status: Int) async throws {
    let origin = try Origin()
    let hasBody = status != 204 && status != 304
    origin.route("/a", to: .status(status, body: hasBody ? body : []))
    let failure = try await makeDownloader().failure(of: origin.url("/a"))
    #expect(failure == .sourceError(status: status))
  }

  @Test func `an error keeps its status regardless of its body`() async throws {
    let origin = try Origin()
    let head = OriginReply.head(404, headers: ["Transfer-Encoding: chunked"])
    let chunk = OriginReply.chunk(body)
    origin.route("/endless", to: OriginReply([.send(head), .sendForever(chunk)]))
    origin.route("/cut", to: OriginReply([.send(head), .send(chunk), .close]))
    let downloader = try makeDownloader()
    for path in ["/endless", "/cut"] {
      #expect(await downloader.failure(of: origin.url(path)) == .sourceNotFound(status: 404))
    }
    #expect(downloader.figures.failed == ["source_not_found": 2])
    #expect(downloader.figures.bytes == 0)
  }

  @Test func `a body shorter than declared is source_incomplete`() async throws {
    let origin = try Origin()
    origin.route("/length", to: .truncated(body, declaring: body.count + 1))
    origin.route("/chunks", to: .truncatedChunked(body))
    origin.route("/reset", to: .reset(after: body, declaring: body.count * 2))
    let garbled = OriginReply.chunkedHead + OriginReply.chunk(body) + Array("zz\r\nxx".utf8)
    origin.route("/garbled", to: .raw(garbled))
    let downloader = try makeDownloader()
    for path in ["/length", "/chunks", "/reset", "/garbled"] {
      let failure = await downloader.failure(of: origin.url(path))
      #expect(failure?.code == "source_incomplete", "\(path): \(String(describing: failure))")
    }
  }

  @Test func `an origin without a valid HTTP response is unreachable`() async throws {
    let origin = try Origin()
    origin.route("/reset", to: .resetBeforeHead)
    origin.route("/close", to: .closeBeforeHead)
    origin.route("/nonsense", to: .raw(Array("hello, I am no web server\r\n\r\n".utf8)))
    origin.route("/half", to: .raw(Array("HTTP/1.1 200 OK\r\nContent-Ty".utf8)))
    origin.route("/headers", to: .endlessHeaders)
    let line = "HTTP/1.1 200 OK\r\nX-Long: " + String(repeating: "x", count: 200_000)
    origin.route("/line", to: .raw(Array(line.utf8)))
    let closed = try ClosedPort()
    let refused = closed.url("/a")
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

  @Test func `response headers are accepted up to the limit`() async throws {
    let origin = try Origin()
    let filler = "X-Filler: " + String(repeating: "a", count: 3_000)
    origin.serve("/a", bytes: body, headers: [filler])
    #expect(
      try await makeDownloader { $0.maximumHeaderBytes = 2_000 }
        .failure(of: origin.url("/a"))?.code == "source_unreachable")
    _ = try await makeDownloader { $0.maximumHeaderBytes = 4_000 }.load(origin.url("/a"))
  }

  @Test func `a slow origin times out before, within and between bytes, and in redirects`()
    async throws
  {
    let origin = try Origin()
    let deaf = try Origin(answers: false)
    let gate = Gate()
    defer { gate.open() }
    origin.route("/silence", to: .silence)
    origin.route("/middle", to: .ok(body, holdingAfter: 10, at: gate))
    origin.route("/trickle", to: .trickle(body, milliseconds: 5))
    origin.route("/moved", to: .redirect(to: "/silence"))
    let head = OriginReply.head(302, headers: ["Location: /x", "Content-Length: 9"])
    origin.route("/held", to: OriginReply([.send(head), .silence]))
    let downloader = try makeDownloader { $0.timeout = .milliseconds(300) }
    let urls =
      ["/silence", "/middle", "/trickle", "/moved", "/held"].map { origin.url($0) }
      + [deaf.url("/a")]
    await withTaskGroup(of: Void.self) { group in
      for url in urls {
        group.addTask {
          let failure = await downloader.failure(of: url)
          #expect(failure?.code == "source_timeout", "\(url): \(String(describing: failure))")
          #expect(failure?.decidingKey == "download.timeout", "\(url)")
        }
      }
    }
    #expect(downloader.figures.failed == ["source_timeout": urls.count])
  }

  @Test func `a transfer below the minimum speed ends before its time-out`() async throws {
    let origin = try Origin()
    origin.route("/trickle", to: .trickle(body, milliseconds: 50))
    let downloader = try makeDownloader {
      $0.timeout = .seconds(3_600)
      $0.lowSpeedTime = .seconds(1)
    }
    let failure = await downloader.failure(of: origin.url("/trickle"))
    #expect(failure?.code == "source_timeout")
    #expect(failure?.decidingKey == "download.timeout")
  }

  @Test func `a body over the limit is refused by its declared length or by its bytes`()
    async throws
  {
    let origin = try Origin()
    let head = OriginReply.head(200, headers: ["Content-Length: 10001"])
    origin.route("/declared", to: OriginReply([.send(head), .silence]))
    origin.route("/huge", to: .truncated([], declaring: .max))
    origin.route("/chunked", to: .chunked([UInt8](repeating: 1, count: 10_001), size: 100))
    origin.route("/endless", to: .endlessBody)
    origin.route("/fits", to: .chunked([UInt8](repeating: 1, count: 10_000), size: 100))
    let downloader = try makeDownloader { $0.maximumBytes = 10_000 }
    for path in ["/declared", "/huge", "/chunked", "/endless"] {
      let failure = await downloader.failure(of: origin.url(path))
      #expect(failure == .sourceTooLarge(limit: 10_000), "\(path)")
    }
    #expect(try await downloader.load(origin.url("/fits")).file.count == 10_000)
  }

  @Test func `an empty body is unsupported_format`() async throws {
    let origin = try Origin()
    origin.serve("/length", bytes: [])
    origin.route("/chunked", to: .chunked([], size: 1))
    let downloader = try makeDownloader()
    for path in ["/length", "/chunked"] {
      let failure = await downloader.failure(of: origin.url(path))
      #expect(failure == .unsupportedFormat(detail: "empty body"))
    }
  }

  @Test func `redirects are followed up to the limit`() async throws {
    let origin = try Origin()
    for number in 0..<7 { origin.route("/\(number)", to: .redirect(to: "/\(number + 1)")) }
    origin.serve("/7", bytes: body)
    origin.route("/loop", to: .redirect(to: "/loop"))
    let downloader = try makeDownloader()
    #expect(await downloader.failure(of: origin.url("/loop")) == .tooManyRedirects(limit: 5))
    #expect(origin.requests(to: "/loop") == 6)
    #expect(await downloader.failure(of: origin.url("/1")) == .tooManyRedirects(limit: 5))
    #expect(try await downloader.load(origin.url("/2")).file.bytes == body)
    let strict = try makeDownloader { $0.maximumRedirects = 0 }
    #expect(await strict.failure(of: origin.url("/2")) == .tooManyRedirects(limit: 0))
    #expect(try await strict.load(origin.url("/7")).file.bytes == body)
  }

  @Test func `a redirect is followed regardless of its body`() async throws {
    let origin = try Origin()
    let chunk = OriginReply.chunk(body)
    let head = OriginReply.head(302, headers: ["Location: /there", "Transfer-Encoding: chunked"])
    origin.route("/endless", to: OriginReply([.send(head), .sendForever(chunk)]))
    origin.route("/cut", to: OriginReply([.send(head), .send(chunk), .close]))
    origin.serve("/there", bytes: body)
    let downloader = try makeDownloader()
    for path in ["/endless", "/cut"] {
      #expect(try await downloader.load(origin.url(path)).file.bytes == body)
    }
  }

  @Test func `a redirect without a location is source_error`() async throws {
    let origin = try Origin()
    origin.route("/a", to: .status(302, body: body))
    let failure = try await makeDownloader().failure(of: origin.url("/a"))
    #expect(failure == .sourceError(status: 302))
  }
}
