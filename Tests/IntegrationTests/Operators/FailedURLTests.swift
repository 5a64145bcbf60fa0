// Failed URLs (SDWebImage's blacklist): which are listed, how long, and how they are removed.

import TestSupport
import Testing

@Suite(.onOwnThreads) final class FailedURLTests: OriginSuite {
  private static let fromTheList = "pictor; hit; detail=failed-url"

  @Test func `a permanent failure is returned again at once, listed, and removed on request`()
    throws
  {
    // Given
    let pictor = try PictorProcess(
      in: folder, PictorProcess.operated + ["--download.maximum_bytes", "20KiB"])
    let image = try TestImages.jpeg(width: 60, height: 40)
    origin.route("/absent", to: .status(404))
    origin.route("/gone", to: .status(410))
    origin.serve("/half", bytes: Array(image.prefix(image.count / 2)))
    origin.serve("/text", bytes: Array("2 2\n1 2\n3 4\n".utf8))
    origin.serve("/large", bytes: [UInt8](repeating: 0xff, count: 30_000))
    let cases = [
      ("/absent", 404, "source_not_found"), ("/gone", 404, "source_not_found"),
      ("/half", 422, "undecodable"), ("/text", 415, "unsupported_format"),
      ("/large", 413, "source_too_large"),
    ]
    for (path, status, code) in cases {
      // When
      let first = try pictor.get(origin.target(path))
      let again = try pictor.get(origin.target(path))
      let other = try pictor.get(origin.target(path, adding: "&w=10"))
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

    // When: an operator removes one, then all
    let one = try pictor.operate(
      "DELETE", target: "/admin/failed?url=\(encoded(origin.url("/absent")))")
    #expect(one.text.contains("\"removed\" : 1"))
    #expect(try pictor.get(origin.target("/absent"))["cache-status"] == nil)
    #expect(origin.requests(to: "/absent") == 2)
    #expect(try pictor.operate("DELETE", target: "/admin/failed").text.contains("\"removed\" : 5"))
    // Then
    #expect(try pictor.failedURLs().isEmpty)
    _ = try pictor.get(origin.target("/gone"))
    #expect(origin.requests(to: "/gone") == 2)
  }

  @Test func `a failure expires after its time`() throws {
    let pictor = try PictorProcess(
      in: folder, PictorProcess.operated + ["--failures.ttl", "404=1s,410=1d"])
    let image = try TestImages.jpeg(width: 30, height: 20)
    origin.route("/brief") { $0.number == 1 ? .status(404) : .ok(image) }
    for path in ["/1", "/2", "/3"] { origin.route(path, to: .status(410)) }
    #expect(try pictor.get(origin.target("/brief")).status == 404)
    // Without retry and operator, it expires.
    try blockUntil("the origin gets another request") {
      try pictor.get(origin.target("/brief")).status == 200
    }
    for path in ["/1", "/2", "/3"] { _ = try pictor.get(origin.target(path)) }
    #expect(try pictor.failedURLs().map(\.url) == ["/1", "/2", "/3"].map { origin.url($0) })
    #expect(try pictor.failedURLs().allSatisfy { $0.seconds > 80_000 })
  }

  @Test func `a cached image is served although its source failed later`() throws {
    let pictor = try PictorProcess(in: folder, ["--download.maximum_bytes", "100KiB"])
    let image = try TestImages.jpeg(width: 30, height: 20)
    let large = [UInt8](repeating: 0, count: 200_000)
    origin.route("/a.jpg") { $0.number == 1 ? .ok(image) : .ok(large) }
    #expect(try pictor.get(origin.target("/a.jpg")).status == 200)
    #expect(try pictor.get(origin.target("/a.jpg", adding: "&cache=bypass")).status == 413)
    #expect(try pictor.get(origin.target("/a.jpg"))["cache-status"] == "pictor; hit; detail=memory")
    #expect(origin.requests(to: "/a.jpg") == 2)
  }
}
