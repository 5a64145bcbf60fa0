// How a request may use cached entries: refresh, cache, store, detach, RFC 9111's directives.

import TestSupport
import Testing

@Suite(.onOwnThreads) struct CacheUseTests {
  private let folder: TemporaryFolder
  private let origin: Origin
  private static let modified = "Sat, 21 Nov 2020 10:00:00 GMT"

  init() throws {
    folder = try TemporaryFolder()
    origin = try Origin()
  }

  /// An origin that answers 304 to matching validators, with the other fields in `headers`.
  private func route(_ path: String, image: [UInt8], headers: [String]) {
    let headers = headers + ["ETag: \"1\"", "Last-Modified: \(Self.modified)"]
    origin.route(path) { request in
      request.headers["if-none-match"] == "\"1\""
        ? .status(304, headers: headers) : .ok(image, headers: headers)
    }
  }

  // MARK: RefreshCached

  @Test func `refresh=1 sends validators, and a 304 renews all entries`()
    throws
  {
    // Given
    let pictor = try PictorProcess(in: folder)
    let image = try TestImages.jpeg(width: 60, height: 40)
    let modified = Self.modified
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
    #expect(requests.last?.headers["if-modified-since"] == Self.modified)
    #expect(refreshed["cache-status"] == "pictor; fwd=request; fwd-status=304; stored")
    #expect(refreshed.body == before.body && refreshed["etag"] == before["etag"])
    #expect(try pictor.stats().imaging.succeeded == 1)
    let after = try pictor.get(origin.target("/a.jpg", adding: "&w=30"))
    #expect(after["cache-status"] == "pictor; hit; detail=memory")
    let ages = [before, after].map { $0["age"].flatMap { Int($0) } ?? -1 }
    #expect(ages[0] >= 5_000 && (0..<1_000).contains(ages[1]), "\(ages)")
  }

  @Test func `refresh=1 with changed bytes replaces the source and all its variants`()
    throws
  {
    // Given
    var pictor = try PictorProcess(in: folder)
    let wide = try TestImages.jpeg(width: 60, height: 30)
    let tall = try TestImages.jpeg(width: 30, height: 60)
    origin.route("/a.jpg") { request in
      .ok(request.number == 1 ? wide : tall, headers: ["ETag: \"\(request.number)\""])
    }
    for width in [10, 20] {
      let answer = try pictor.get(origin.target("/a.jpg", adding: "&w=\(width)"))
      #expect(try Pixels(decoding: answer.body).size.height == width / 2)
    }
    // When
    let refreshed = try pictor.get(origin.target("/a.jpg", adding: "&w=10&refresh=1"))
    // Then
    #expect(refreshed["cache-status"] == "pictor; fwd=request; fwd-status=200; stored")
    #expect(try Pixels(decoding: refreshed.body).size.height == 20)
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

  @Test func `an expired image is revalidated with its validators`() throws {
    let pictor = try PictorProcess(in: folder)
    let image = try TestImages.jpeg(width: 30, height: 20)
    route("/same.jpg", image: image, headers: ["Cache-Control: max-age=0"])
    origin.serve("/other.jpg", bytes: image, headers: ["Cache-Control: max-age=0", "ETag: \"2\""])
    for (path, status) in [("/same.jpg", 304), ("/other.jpg", 200)] {
      _ = try pictor.get(origin.target(path))
      let again = try pictor.get(origin.target(path))
      #expect(again.status == 200)
      #expect(again["cache-status"] == "pictor; fwd=stale; fwd-status=\(status); stored")
      #expect(origin.received(at: path).last?.headers["if-none-match"] != nil)
    }
  }

  // MARK: FromCacheOnly, FromLoaderOnly, StoreCacheType

  @Test func `cache=only sends no request to the origin`() throws {
    let pictor = try PictorProcess(in: folder)
    let image = try TestImages.jpeg(width: 30, height: 20)
    origin.serve("/a.jpg", bytes: image)
    origin.serve("/old.jpg", bytes: image, headers: ["Cache-Control: max-age=0"])
    let absent = try pictor.get(origin.target("/a.jpg", adding: "&cache=only"))
    #expect(absent.status == 504 && absent.text.contains("\"not_cached\""))
    #expect(origin.totalRequests == 0)
    for path in ["/a.jpg", "/old.jpg"] { _ = try pictor.get(origin.target(path)) }
    let kept = try pictor.get(origin.target("/a.jpg", adding: "&cache=only"))
    #expect(kept["cache-status"] == "pictor; hit; detail=memory")
    // Another size needs no network either.
    let made = try pictor.get(origin.target("/a.jpg", adding: "&cache=only&w=10"))
    #expect(made["cache-status"] == "pictor; hit; detail=source")
    #expect(try pictor.get(origin.target("/old.jpg", adding: "&cache=only")).status == 504)
    #expect(origin.totalRequests == 2)
  }

  @Test func `cache=bypass loads the image and replaces all its entries`() throws {
    let pictor = try PictorProcess(in: folder)
    let wide = try TestImages.jpeg(width: 60, height: 30)
    let tall = try TestImages.jpeg(width: 30, height: 60)
    origin.route("/a.jpg") { .ok($0.number == 1 ? wide : tall, headers: ["ETag: \"1\""]) }
    for rest in ["", "&w=20"] { _ = try pictor.get(origin.target("/a.jpg", adding: rest)) }
    let loaded = try pictor.get(origin.target("/a.jpg", adding: "&cache=bypass"))
    #expect(loaded["cache-status"] == "pictor; fwd=request; fwd-status=200; stored")
    #expect(origin.received(at: "/a.jpg").last?.headers["if-none-match"] == nil)
    let kept = try pictor.get(origin.target("/a.jpg"))
    #expect(kept["cache-status"] == "pictor; hit; detail=memory")
    #expect(kept.body == loaded.body)
    let other = try pictor.get(origin.target("/a.jpg", adding: "&w=20"))
    #expect(try Pixels(decoding: other.body).size.height == 40)
    #expect(origin.requests(to: "/a.jpg") == 2)
  }

  @Test func `a response is stored in the requested tiers, as a restart shows`() throws {
    var pictor = try PictorProcess(in: folder)
    let image = try TestImages.jpeg(width: 30, height: 20)
    // The tier of each entry before and after the restart; `nil` for none.
    let cases: [(store: String, before: String?, after: String?)] = [
      ("all", "memory", "disk"), ("memory", "memory", nil), ("disk", "disk", "disk"),
      ("none", nil, nil),
    ]
    func look(_ store: String, for tier: String?) throws {
      let answer = try pictor.get(
        origin.target("/\(store).jpg", adding: "&cache=only&store=\(store)"))
      #expect(answer.status == (tier == nil ? 504 : 200), "\(store)")
      #expect(answer["cache-status"] == tier.map { "pictor; hit; detail=\($0)" }, "\(store)")
    }
    for (store, before, _) in cases {
      origin.serve("/\(store).jpg", bytes: image)
      let answer = try pictor.get(origin.target("/\(store).jpg", adding: "&store=\(store)"))
      let isStored = answer["cache-status"]?.contains("stored") == true
      #expect(answer.status == 200 && isStored == (before != nil), "\(store)")
      try look(store, for: before)
    }
    #expect(try pictor.end() == 0)
    pictor = try PictorProcess(in: folder)
    for (store, _, after) in cases { try look(store, for: after) }
    #expect(origin.totalRequests == 4)
  }

  // MARK: ContinueInBackground

  @Test func `a detached load continues after its client disconnects`() throws {
    let pictor = try PictorProcess(in: folder)
    let gate = Gate()
    origin.route("/a.jpg", to: .hold(gate, then: .ok(try TestImages.jpeg(width: 30, height: 20))))
    let client = try pictor.ask(origin.target("/a.jpg", adding: "&detach=1"))
    try blockUntil("the origin gets the request") { origin.requests(to: "/a.jpg") == 1 }
    client.close()
    try pictor.waitFor("the client is gone") { $0.requests.clientsGone == 1 }
    gate.open()
    try pictor.waitFor("it is made") { $0.imaging.succeeded == 1 && $0.flights.variants == 0 }
    #expect(try pictor.stats().downloads.cancelled == 0)
    let answer = try pictor.get(origin.target("/a.jpg", adding: "&cache=only"))
    #expect(answer["cache-status"] == "pictor; hit; detail=memory")
  }

  // MARK: Request directives

  @Test func `a request's Cache-Control follows RFC 9111`() throws {
    // Given: an image that stays fresh for 5,000 seconds, and one that has been stale for as long
    let pictor = try PictorProcess(in: folder)
    let image = try TestImages.jpeg(width: 30, height: 20)
    route("/fresh", image: image, headers: ["Cache-Control: max-age=10000", "Age: 5000"])
    route("/stale", image: image, headers: ["Cache-Control: max-age=5000", "Age: 10000"])
    for path in ["/fresh", "/stale"] { _ = try pictor.get(origin.target(path)) }
    let cases: [(path: String, directive: String, asks: Bool)] = [
      ("/fresh", "no-cache", true), ("/fresh", "max-age=100", true),
      ("/fresh", "max-age=9000", false), ("/fresh", "min-fresh=9000", true),
      ("/fresh", "min-fresh=100", false), ("/stale", "max-stale=100", true),
      ("/stale", "max-stale=9000", false), ("/stale", "max-stale", false),
      ("/fresh", "only-if-cached", false),
    ]
    for (path, directive, asks) in cases {
      let before = origin.requests(to: path)
      // When
      let answer = try pictor.connect().get(
        origin.target(path), headers: ["Cache-Control": directive])
      // Then
      #expect(answer.status == 200, "\(path) \(directive)")
      #expect(origin.requests(to: path) - before == (asks ? 1 : 0), "\(path) \(directive)")
      let status = answer["cache-status"] ?? ""
      #expect(
        status.hasPrefix(asks ? "pictor; fwd=request; fwd-status=304" : "pictor; hit"),
        "\(path) \(directive): \(status)")
    }
    let stale = try pictor.connect().get(
      origin.target("/stale"), headers: ["Cache-Control": "only-if-cached"])
    #expect(stale.status == 504 && stale.text.contains("\"not_cached\""))
  }

  @Test func `no-store stores the response in no tier`() throws {
    let pictor = try PictorProcess(in: folder)
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 30, height: 20))
    let client = try pictor.connect()
    let answer = try client.get(
      origin.target("/a.jpg"), headers: ["Cache-Control": "no-store"])
    #expect(answer["cache-status"] == "pictor; fwd=uri-miss; fwd-status=200")
    #expect(try client.get(origin.target("/a.jpg", adding: "&cache=only")).status == 504)
    #expect(try client.get(origin.target("/a.jpg", adding: "&cache=only&w=10")).status == 504)
  }
}
