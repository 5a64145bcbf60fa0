// Tests of failed URLs (SDWebImage's blacklist): what is listed, what never is, for how long, and who takes it off.

import TestSupport
import Testing

@Suite(.onOwnThreads) struct FailedURLTests {
  private let folder: TemporaryFolder
  private let origin: Origin
  private static let fromTheList = "pictor; hit; detail=failed-url"

  init() throws {
    folder = try TemporaryFolder()
    origin = try Origin()
  }

  @Test func `what will not heal is told again at once, listed, and forgotten when told to`() throws
  {
    // Given
    let pictor = try PictorProcess(
      in: folder, PictorProcess.operated + ["--download.maximum_bytes", "20KiB"])
    let image = try TestImages.jpeg(width: 60, height: 40)
    origin.route("/absent", .status(404))
    origin.route("/gone", .status(410))
    origin.serve("/half", Array(image.prefix(image.count / 2)))
    origin.serve("/text", Array("2 2\n1 2\n3 4\n".utf8))
    origin.serve("/large", [UInt8](repeating: 0xff, count: 30_000))
    let cases = [
      ("/absent", 404, "source_not_found"), ("/gone", 404, "source_not_found"),
      ("/half", 422, "undecodable"), ("/text", 415, "unsupported_format"),
      ("/large", 413, "source_too_large"),
    ]
    for (path, status, code) in cases {
      // When
      let first = try pictor.get(origin.target(path))
      let again = try pictor.get(origin.target(path))
      let other = try pictor.get(origin.target(path, "&w=10"))
      // Then
      #expect(first["cache-status"] == nil)
      for answer in [first, again, other] {
        #expect(answer.status == status && answer.text.contains("\"\(code)\""), "\(path)")
      }
      #expect(again["cache-status"] == Self.fromTheList, "\(path)")
      #expect(other["cache-status"] == Self.fromTheList, "\(path)")
      #expect(origin.requests(to: path) == 1, "\(path)")
    }
    #expect(try pictor.failedURLs().map(\.url) == cases.map { origin.url($0.0) })
    #expect(try pictor.failedURLs().map(\.code) == cases.map(\.2))
    #expect(try pictor.failedURLs().allSatisfy { $0.seconds > 500 })
    #expect(try pictor.stats().flights.failedURLs == 5)

    // When: an operator forgets one, then all
    let one = try pictor.operate("DELETE", "/admin/failed?url=\(encoded(origin.url("/absent")))")
    #expect(one.text.contains("\"removed\" : 1"))
    #expect(try pictor.get(origin.target("/absent"))["cache-status"] == nil)
    #expect(origin.requests(to: "/absent") == 2)
    #expect(try pictor.operate("DELETE", "/admin/failed").text.contains("\"removed\" : 5"))
    // Then
    #expect(try pictor.failedURLs().isEmpty)
    _ = try pictor.get(origin.target("/gone"))
    #expect(origin.requests(to: "/gone") == 2)
  }

  @Test func `what may heal is asked for each time`() throws {
    // Given
    let pictor = try PictorProcess(
      in: folder,
      PictorProcess.operated + [
        "--download.timeout", "300ms", "--download.retries", "0",
        "--download.breaker_threshold", "0",
      ])
    origin.route("/silent", .silence)
    origin.route("/reset", .resetBeforeHead)
    for status in [429, 500, 503] { origin.route("/\(status)", .status(status)) }
    for path in ["/silent", "/reset", "/429", "/500", "/503"] {
      for request in 1...2 {
        // When
        let answer = try pictor.get(origin.target(path))
        // Then
        #expect(answer.status == (path == "/silent" ? 504 : 502), "\(path)")
        #expect(answer["cache-status"] == nil && answer["cache-control"] == "no-store", "\(path)")
        #expect(origin.requests(to: path) == request, "\(path)")
      }
    }
    #expect(try pictor.failedURLs().isEmpty)
  }

  @Test func `what was unreachable or cancelled is had as soon as it can be`() throws {
    let pictor = try PictorProcess(
      in: folder, PictorProcess.operated + ["--download.retries", "0"])
    let closed = try Origin()
    let port = closed.port
    closed.stop()
    for url in ["http://127.0.0.1:\(port)/a.jpg", "http://no-such-host.invalid/a.jpg"] {
      for _ in 0..<2 {
        let answer = try pictor.get("/image?url=\(encoded(url))")
        #expect(answer.status == 502 && answer["cache-status"] == nil, "\(url)")
      }
    }

    let image = try TestImages.jpeg(width: 30, height: 20)
    origin.route("/a.jpg") { $0.number == 1 ? .silence : .ok(image) }
    let client = try pictor.ask(origin.target("/a.jpg"))
    try pictor.waitUntil("it is asked for") { origin.requests(to: "/a.jpg") == 1 }
    client.close()
    try pictor.waitFor("it is cancelled") { $0.downloads.cancelled == 1 }
    #expect(try pictor.failedURLs().isEmpty)
    #expect(try pictor.get(origin.target("/a.jpg")).status == 200)
  }

  @Test func `retry passes the list, and success takes the URL off it`() throws {
    // Given
    let pictor = try PictorProcess(in: folder, PictorProcess.operated)
    let image = try TestImages.jpeg(width: 30, height: 20)
    origin.route("/a.jpg") { $0.number <= 2 ? .status(404) : .ok(image) }
    #expect(try pictor.get(origin.target("/a.jpg")).status == 404)
    // When it fails again
    #expect(try pictor.get(origin.target("/a.jpg", "&retry=1")).status == 404)
    // Then it stays listed
    #expect(origin.requests(to: "/a.jpg") == 2)
    #expect(try pictor.get(origin.target("/a.jpg"))["cache-status"] == Self.fromTheList)
    // When it succeeds
    #expect(try pictor.get(origin.target("/a.jpg", "&retry=1")).status == 200)
    // Then it is not
    #expect(try pictor.failedURLs().isEmpty)
    #expect(try pictor.get(origin.target("/a.jpg", "&w=10")).status == 200)
    #expect(origin.requests(to: "/a.jpg") == 3)
  }

  @Test func `a failure is forgotten after its time, and the oldest where there are too many`()
    throws
  {
    let pictor = try PictorProcess(
      in: folder,
      PictorProcess.operated + ["--failures.ttl", "404=1s,410=1d", "--failures.limit", "2"])
    let image = try TestImages.jpeg(width: 30, height: 20)
    origin.route("/brief") { $0.number == 1 ? .status(404) : .ok(image) }
    for path in ["/1", "/2", "/3"] { origin.route(path, .status(410)) }
    #expect(try pictor.get(origin.target("/brief")).status == 404)
    // No retry and no operator: only its time.
    try pictor.waitUntil("it is asked for again") {
      try pictor.get(origin.target("/brief")).status == 200
    }
    for path in ["/1", "/2", "/3"] { _ = try pictor.get(origin.target(path)) }
    #expect(try pictor.failedURLs().map(\.url) == ["/2", "/3"].map { origin.url($0) })
    #expect(try pictor.failedURLs().allSatisfy { $0.seconds > 80_000 })
  }

  @Test func `what is kept is served though its source is listed`() throws {
    let pictor = try PictorProcess(in: folder, ["--download.maximum_bytes", "100KiB"])
    let image = try TestImages.jpeg(width: 30, height: 20)
    let large = [UInt8](repeating: 0, count: 200_000)
    origin.route("/a.jpg") { $0.number == 1 ? .ok(image) : .ok(large) }
    #expect(try pictor.get(origin.target("/a.jpg")).status == 200)
    #expect(try pictor.get(origin.target("/a.jpg", "&cache=bypass")).status == 413)
    #expect(try pictor.get(origin.target("/a.jpg"))["cache-status"] == "pictor; hit; detail=memory")
    #expect(origin.requests(to: "/a.jpg") == 2)
  }
}
