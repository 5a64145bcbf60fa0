// GreedyClientTests: clients that hold the real program's connections, places and workers.

import Glibc
import Telemetry
import TestSupport
import Testing

@Suite(.onOwnThreads) struct GreedyClientTests {
  private let folder: TemporaryFolder
  private let origin: Origin
  private let greedy: KeyValuePairs = ["X-Forwarded-For": "198.51.100.7"]
  private let modest: KeyValuePairs = ["X-Forwarded-For": "2001:db8::8"]

  init() throws {
    folder = try TemporaryFolder()
    origin = try Origin()
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 300, height: 200))
  }

  @Test func `a flood of quiet and half-open requests leaves images and health checks to others`()
    throws
  {
    // Given connections without a request, and with half a head, and time-outs that do not help
    let pictor = try PictorProcess(
      in: folder,
      [
        "--server.connections", "64", "--server.header_timeout", "1h", "--server.idle_timeout",
        "1h",
      ])
    let crowd = try (0..<openFilesAllow(256)).map { number in
      let client = try pictor.connect()
      if number % 2 == 0 { try client.send("GET /image?url=http HTTP/1.1\r\nHost: t\r\nA") }
      return client
    }
    // Then
    for _ in 0..<5 {
      #expect(try pictor.get(origin.target("/a.jpg", adding: "&w=100")).status == 200)
      let check = try PictorProcess(
        in: folder, ["healthcheck", "--server.port", "\(pictor.port)"], isServer: false)
      #expect(try check.end(0) == 0, "\(check.log)")
    }
    let stats = try pictor.stats().requests
    #expect(stats.connectionsYielded > 0 && stats.connections <= 64 + 64)
    withExtendedLifetime(crowd) {}
  }

  @Test func `one client's misses leave places for others', and a 429 says when to come back`()
    throws
  {
    // Given an origin that waits, and as many requests of one client as it may have
    let pictor = try PictorProcess(
      in: folder,
      [
        "--server.trusted_proxies", "127.0.0.0/8", "--server.active_requests_per_client", "3",
        "--server.explain_errors", "true",
      ])
    let gate = Gate()
    let image = try TestImages.jpeg(width: 9, height: 9)
    origin.route("/slow.jpg", to: .ok(image, holdingAfter: 0, at: gate))
    let waiting = try (1...3).map { number in
      let client = try pictor.connect()
      let target = origin.target("/slow.jpg", adding: "&w=\(number)")
      try client.send(HTTPClient.text("GET", target: target, headers: greedy))
      return client
    }
    try pictor.waitFor("three requests wait") { $0.flights.variants == 3 }
    // When
    let refused = try pictor.connect().get(origin.target("/a.jpg"), headers: greedy)
    let served = try pictor.connect().get(origin.target("/a.jpg"), headers: modest)
    // Then
    #expect(refused.status == 429 && refused["Retry-After"] == "1")
    #expect(refused.text.contains("\"code\":\"rate_limited\""))
    #expect(refused.text.contains("server.active_requests_per_client"))
    #expect(served.status == 200)
    #expect(try pictor.stats().requests.rateLimited == ["active_requests": 1])
    // What is in memory now is for all.
    #expect(
      try pictor.connect().get(origin.target("/a.jpg"), headers: greedy).status == 200)
    gate.open()
    for client in waiting { #expect(try client.readAnswer().status == 200) }
  }

  @Test func `one client's drips on many hosts take no place of another client's misses`() throws {
    // Given hosts that drip 40 KiB/s, so none is slow, and too many downloads of one client
    let hosts = try (0..<4).map { _ in try Origin() }
    let image = try TestImages.jpeg(width: 300, height: 200)
    let piece = [UInt8](repeating: 0, count: 1_024)
    for host in hosts {
      host.route("/drip") { _ in
        let head = OriginReply.head(200, headers: ["Content-Length: 8000000"])
        return OriginReply([.send(head + image)] + [.drip(piece, milliseconds: 25)])
      }
    }
    origin.serve("/joined.jpg", bytes: image)
    let pictor = try PictorProcess(
      in: folder,
      [
        "--server.trusted_proxies", "127.0.0.0/8", "--download.limit", "16",
        "--download.timeout", "10m", "--server.request_timeout", "10m",
      ])
    func hold(_ target: String) throws -> HTTPClient {
      let client = try pictor.connect()
      try client.send(HTTPClient.text("GET", target: target, headers: greedy))
      return client
    }
    var held = try hosts.flatMap { host in try (0..<6).map { try hold(host.target("/drip?\($0)")) }
    }
    // The last one waits only if the drips have all places before.
    try pictor.waitFor("the drips are there") { $0.downloads.running + $0.downloads.waiting == 24 }
    held.append(try hold(origin.target("/joined.jpg")))
    try pictor.waitFor("all are there") { $0.downloads.running + $0.downloads.waiting == 25 }
    // Then another client's miss is answered, and what it joins of the waiting ones
    let wait = 60
    #expect(
      try pictor.connect(timeout: wait).get(origin.target("/a.jpg"), headers: modest).status == 200)
    #expect(
      try pictor.connect(timeout: wait).get(origin.target("/joined.jpg"), headers: modest).status
        == 200)
    #expect(try pictor.stats().downloads.limitPerClient == 4)
    withExtendedLifetime(held) {}
  }

  @Test func `imaging time is charged to the client whose image is rendered`() throws {
    // Given less time than any image takes
    let pictor = try PictorProcess(
      in: folder,
      ["--server.trusted_proxies", "127.0.0.0/8", "--server.imaging_time_per_client", "2ms"])
    func status(_ width: Int, headers: KeyValuePairs<String, String>) throws -> Int {
      try pictor.connect().get(
        origin.target("/a.jpg", adding: "&w=\(width)&format=webp"), headers: headers
      ).status
    }
    // When it is used up
    var width = 0
    try blockUntil("the client is limited") {
      width += 1
      return try status(width, headers: greedy) == 429
    }
    // Then the images it has are served, and others may render
    #expect(width > 1)
    #expect(try status(1, headers: greedy) == 200)
    #expect(try status(250, headers: modest) == 200)
    #expect(try pictor.stats().requests.rateLimited["imaging_time"] == 1)
  }

  @Test(arguments: ["/image", "/info"])
  func `imaging time is charged for damaged images, too`(path: String) throws {
    let pictor = try PictorProcess(
      in: folder,
      ["--server.trusted_proxies", "127.0.0.0/8", "--server.imaging_time_per_client", "2ms"])
    let whole = try TestImages.jpeg(width: 300, height: 200)
    origin.serve("/damaged.jpg", bytes: Array(whole.prefix(whole.count / 2)))
    var statuses: Set<Int> = []
    var number = 0
    try blockUntil("the client is limited") {
      number += 1
      let target = self.origin.target("/damaged.jpg?\(number)")
      let answer = try pictor.connect().get(
        path + target.dropFirst("/image".count), headers: self.greedy)
      statuses.insert(answer.status)
      return answer.status == 429
    }
    #expect(statuses.contains(path == "/image" ? 422 : 200))
  }

  @Test func `a PROXY header names the client in the log`() throws {
    let pictor = try PictorProcess(
      in: folder,
      ["--server.trusted_proxies", "127.0.0.0/8", "--server.proxy_protocol", "true"])
    let client = try pictor.connect()
    try client.send(
      "PROXY TCP6 2001:db8::77 ::1 1 2\r\n"
        + HTTPClient.text("GET", target: origin.target("/a.jpg")))
    #expect(try client.readAnswer().status == 200)
    #expect(try pictor.connect().get("/stats").status == 400)
    #expect(try pictor.end() == 0)
    #expect(pictor.log.contains("\"client\":\"2001:db8::77\""))
  }
}
