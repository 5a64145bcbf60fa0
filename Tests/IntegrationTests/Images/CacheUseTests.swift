// A request that loads what is cached: validators and all entries, in the real program.

import TestSupport
import Testing

@Suite(.onOwnThreads) final class CacheUseTests: OriginSuite {
  @Test func `refresh=1 sends validators, and a 304 renews all entries`()
    throws
  {
    // Given
    let pictor = try PictorProcess(in: folder)
    let image = try TestImages.jpeg(width: 60, height: 40)
    let modified = "Sat, 21 Nov 2020 10:00:00 GMT"
    origin.route("/a.jpg") { request in
      request.headers["if-none-match"] == "\"1\""
        ? .status(304, headers: ["Cache-Control: max-age=6000"])
        : .ok(
          image,
          headers: [
            "ETag: \"1\"", "Last-Modified: \(modified)", "Cache-Control: max-age=6000", "Age: 5000",
          ])
    }
    let before = try pictor.get(origin.target("/a.jpg", adding: "&w=30"))
    // When
    let refreshed = try pictor.get(origin.target("/a.jpg", adding: "&w=30&refresh=1"))
    // Then
    let requests = origin.received(at: "/a.jpg")
    #expect(requests.count == 2)
    #expect(requests.first?.headers["if-none-match"] == nil)
    #expect(requests.last?.headers["if-none-match"] == "\"1\"")
    #expect(requests.last?.headers["if-modified-since"] == modified)
    #expect(refreshed["cache-status"] == "pictor; fwd=request; fwd-status=304; stored")
    #expect(refreshed.body == before.body && refreshed["etag"] == before["etag"])
    #expect(try pictor.stats().imaging.succeeded == 1)
    let after = try pictor.get(origin.target("/a.jpg", adding: "&w=30"))
    #expect(after["cache-status"] == "pictor; hit; detail=memory")
    let ages = [before, after].map { $0["age"].flatMap { Int($0) } ?? -1 }
    #expect(ages[0] >= 5_000 && (0..<1_000).contains(ages[1]), "\(ages)")
  }

  @Test(arguments: ["refresh=1", "cache=bypass"])
  func `changed bytes that a request asks for replace the source and all its variants`(
    wish: String
  ) throws {
    // Given: without a refresh the entity tag may stay the same
    var pictor = try PictorProcess(in: folder)
    let wide = try TestImages.jpeg(width: 60, height: 30)
    let tall = try TestImages.jpeg(width: 30, height: 60)
    origin.route("/a.jpg") { request in
      let tag = wish == "refresh=1" ? request.number : 1
      return .ok(request.number == 1 ? wide : tall, headers: ["ETag: \"\(tag)\""])
    }
    for width in [10, 20] {
      let answer = try pictor.get(origin.target("/a.jpg", adding: "&w=\(width)"))
      #expect(try Pixels(decoding: answer.body).size.height == width / 2)
    }
    // When
    let loaded = try pictor.get(origin.target("/a.jpg", adding: "&w=10&\(wish)"))
    // Then
    #expect(loaded["cache-status"] == "pictor; fwd=request; fwd-status=200; stored")
    #expect(try Pixels(decoding: loaded.body).size.height == 20)
    let validator = origin.received(at: "/a.jpg").last?.headers["if-none-match"]
    #expect((validator == nil) == (wish == "cache=bypass"))
    let other = try pictor.get(origin.target("/a.jpg", adding: "&w=20"))
    #expect(other["cache-status"] == "pictor; hit; detail=source")
    #expect(try Pixels(decoding: other.body).size.height == 40)
    // No entry of the old image remains.
    #expect(try pictor.end() == 0)
    pictor = try PictorProcess(in: folder)
    for width in [10, 20] {
      let answer = try pictor.get(origin.target("/a.jpg", adding: "&w=\(width)"))
      #expect(answer["cache-status"] == "pictor; hit; detail=disk")
      #expect(try Pixels(decoding: answer.body).size.height == 2 * width)
    }
    #expect(origin.requests(to: "/a.jpg") == 2)
  }
}
