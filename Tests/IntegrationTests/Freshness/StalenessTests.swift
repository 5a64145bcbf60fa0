// Stale responses of the program: during a revalidation, after a failure of the origin, and across
// a restart. The test images are stale from the start, because their origin states a high age.

import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) final class StalenessTests: OriginSuite {
  /// Stale by 400 seconds on arrival.
  private static let old = ["ETag: \"1\"", "Age: 500"]

  private func seconds(_ field: String, of answer: HTTPAnswer) -> Int {
    answer[field].flatMap { Int($0) } ?? -1
  }

  /// Waits until an image is answered with this status.
  private func wait(
    _ pictor: PictorProcess, for target: String, with status: String
  ) throws -> HTTPAnswer {
    var last: HTTPAnswer?
    try blockUntil("\(status), but \(last?["cache-status"] ?? "none")") {
      last = try pictor.get(target)
      return last?["cache-status"] == status
    }
    return try #require(last)
  }

  // MARK: While revalidating

  @Test func `a stale image is served at once while its origin hangs, and is revalidated once`()
    throws
  {
    // Given
    let pictor = try PictorProcess(in: folder)
    let image = try TestImages.jpeg(width: 60, height: 40)
    let gate = Gate()
    let stale = Self.old + ["Cache-Control: max-age=100, stale-while-revalidate=5000"]
    origin.route("/a.jpg") { request in
      request.number == 1
        ? .ok(image, headers: stale)
        : .hold(gate, then: .status(304, headers: ["Cache-Control: max-age=1000"]))
    }
    let target = origin.target("/a.jpg", adding: "&w=30")
    let first = try pictor.get(target)
    #expect(first["cache-status"] == "pictor; fwd=uri-miss; fwd-status=200; stored")
    // When
    let answers = try (0..<20).map { _ in try pictor.get(target) }
    // Then
    for answer in answers {
      #expect(answer.status == 200 && answer.body == first.body)
      let ttl = try #require(
        answer["cache-status"]?.wholeMatch(of: /pictor; hit; ttl=(-\d+); detail=memory/))
      #expect((-1_000 ... -400).contains(Int(ttl.1) ?? 0))
      #expect(answer["cache-control"] == "public, max-age=100")
      #expect(seconds("age", of: answer) >= 500)
    }
    try blockUntil("it is revalidated") { origin.requests(to: "/a.jpg") == 2 }
    gate.open()
    let fresh = try wait(pictor, for: target, with: "pictor; hit; detail=memory")
    #expect(fresh.body == first.body && (0..<100).contains(seconds("age", of: fresh)))
    #expect(fresh["cache-control"] == "public, max-age=1000")
    #expect(origin.requests(to: "/a.jpg") == 2)
    #expect(origin.received(at: "/a.jpg").last?.headers["if-none-match"] == "\"1\"")
    let stats = try pictor.stats()
    #expect(stats.imaging.succeeded == 1)
    #expect(stats.freshness.staleWhileRevalidate >= 20 && stats.freshness.revalidations == 1)
  }

  @Test func `a reload of an immutable image does not ask the origin`() throws {
    let pictor = try PictorProcess(in: folder)
    origin.serve(
      "/a.jpg", bytes: try TestImages.jpeg(width: 30, height: 20),
      headers: ["Cache-Control: max-age=1000, immutable"])
    let client = try pictor.connect()
    let first = try client.get(origin.target("/a.jpg"))
    #expect(first["cache-control"] == "public, max-age=1000, immutable")
    let reload = try client.get(origin.target("/a.jpg"), headers: ["Cache-Control": "max-age=0"])
    #expect(reload["cache-status"] == "pictor; hit; detail=memory")
    _ = try client.get(origin.target("/a.jpg"), headers: ["Cache-Control": "no-cache"])
    #expect(origin.requests(to: "/a.jpg") == 2)
  }

  // MARK: On error

  @Test
  func `a stale image is served while its origin is down, across a restart, until it recovers`()
    throws
  {
    // Given
    let options = ["--download.breaker_threshold", "0"]
    var pictor = try PictorProcess(in: folder, options)
    let image = try TestImages.jpeg(width: 60, height: 40)
    let stale = Self.old + ["Cache-Control: max-age=100"]
    origin.serve("/a.jpg", bytes: image, headers: stale)
    let target = origin.target("/a.jpg", adding: "&w=30")
    let first = try pictor.get(target)
    // When
    origin.stop()
    // Then
    let failed = try pictor.get(target)
    #expect(failed["cache-status"] == "pictor; fwd=stale; detail=stale-if-error")
    #expect(failed.status == 200 && failed.body == first.body)
    #expect(seconds("age", of: failed) >= 500)
    let next = try pictor.get(target)
    #expect(next["cache-status"]?.hasPrefix("pictor; hit; ttl=-") == true)
    // Another size is rendered from the cached source.
    let other = try pictor.get(origin.target("/a.jpg", adding: "&w=20"))
    #expect(other.status == 200)
    #expect(try pictor.stats().freshness.staleIfError >= 3)
    // When
    #expect(try pictor.end() == 0)
    pictor = try PictorProcess(in: folder, options)
    // Then
    let restarted = try pictor.get(target)
    #expect(restarted["cache-status"] == "pictor; fwd=stale; detail=stale-if-error")
    #expect(restarted.body == first.body)
    #expect(seconds("age", of: restarted) >= seconds("age", of: failed))
    // When
    let again = try Origin(port: origin.port)
    again.route("/a.jpg", to: .status(304, headers: ["Cache-Control: max-age=1000"]))
    // A restart forgets that the origin failed just now.
    #expect(try pictor.end() == 0)
    pictor = try PictorProcess(in: folder, options)
    // Then
    let fresh = try wait(pictor, for: target, with: "pictor; hit; detail=memory")
    #expect(fresh.body == first.body && (0..<100).contains(seconds("age", of: fresh)))
  }

  @Test func `the origin's error is named in Cache-Status, and its Retry-After is respected`()
    throws
  {
    let pictor = try PictorProcess(in: folder)
    let image = try TestImages.jpeg(width: 30, height: 20)
    let stale = Self.old + ["Cache-Control: max-age=100"]
    origin.route("/a.jpg") { request in
      request.number == 1
        ? .ok(image, headers: stale) : .status(503, headers: ["Retry-After: 3000"])
    }
    let target = origin.target("/a.jpg")
    _ = try pictor.get(target)
    let failed = try pictor.get(target)
    #expect(failed["cache-status"] == "pictor; fwd=stale; fwd-status=503; detail=stale-if-error")
    for _ in 0..<5 {
      #expect(try pictor.get(target)["cache-status"]?.hasPrefix("pictor; hit; ttl=-") == true)
    }
    #expect(origin.requests(to: "/a.jpg") == 2)
    // A request that requires the origin gets its error.
    #expect(try pictor.get(target + "&refresh=1").status == 502)
    let stats = try pictor.stats()
    #expect(stats.freshness.failingSources == 1)
    #expect(stats.requests.byOrigin["stale"] == 1)
  }

  @Test func `host rules limit the freshness lifetime of images`() throws {
    let pictor = try PictorProcess(
      in: folder,
      [
        "--hosts",
        "[{ host: '127.0.0.1', minimum_lifetime: '1h', maximum_lifetime: '2h', default_lifetime: '90m' }]",
      ])
    let image = try TestImages.jpeg(width: 30, height: 20)
    // Browsers get the origin's lifetime, even if the image is stored longer here.
    for (path, headers, shared, told) in [
      ("/none", [], 5_400, 3_600), ("/short", ["Cache-Control: max-age=5"], 3_600, 5),
      ("/never", ["Cache-Control: no-cache"], 3_600, 0),
      ("/long", ["Cache-Control: max-age=100000"], 7_200, 7_200),
    ] as [(String, [String], Int, Int)] {
      origin.serve(path, bytes: image, headers: headers)
      let answer = try pictor.get(origin.target(path))
      // A default counts from the response.
      let age = path == "/none" ? try #require(answer["age"].flatMap { Int($0) }) : 0
      let control = "public, max-age=\(told + age)" + (told == shared ? "" : ", s-maxage=\(shared)")
      #expect(answer["cache-control"]?.hasPrefix(control) == true, "\(path)")
      #expect(
        try pictor.get(origin.target(path))["cache-status"] == "pictor; hit; detail=memory")
    }
  }
}
