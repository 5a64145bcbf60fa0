// The downloader's rules as seen by clients and origins: queue, time-outs, retries, circuit
// breaker, headers, redirects.

import Glibc
import Model
import TestSupport
import Testing

@Suite(.onOwnThreads) struct DownloadRulesTests {
  private let folder: TemporaryFolder
  private let origin: Origin

  init() throws {
    folder = try TemporaryFolder()
    origin = try Origin()
  }

  // MARK: Queue

  @Test func `six loads run at a time per host, and other hosts are not delayed`() throws {
    // Given
    let pictor = try PictorProcess(in: folder)
    let gate = Gate()
    let image = try TestImages.jpeg(width: 30, height: 20)
    origin.route("/a.jpg", to: .hold(gate, then: .ok(image)))
    let other = try Origin()
    other.serve("/a.jpg", bytes: image)
    // When
    let clients = try (0..<9).map { try pictor.ask(origin.target("/a.jpg?\($0)")) }
    try pictor.waitFor("six run") { $0.downloads.running == 6 && $0.downloads.waiting == 3 }
    // Then
    #expect(try pictor.get(other.target("/a.jpg")).status == 200)
    try blockUntil("the origin has them") { origin.activeRequests == 6 }
    gate.open()
    for client in clients { #expect(try client.readAnswer().status == 200) }
    #expect(origin.peakRequests == 6)
  }

  @Test func `the limits for running and waiting downloads apply across hosts`() throws {
    let pictor = try PictorProcess(
      in: folder, ["--download.limit", "2", "--download.queue_limit", "1"])
    let gate = Gate()
    let image = try TestImages.jpeg(width: 30, height: 20)
    let origins = try [origin, Origin(), Origin(), Origin()]
    for origin in origins { origin.route("/a.jpg", to: .ok(image, holdingAfter: 0, at: gate)) }
    let clients = try origins.prefix(3).enumerated().map { index, origin in
      let client = try pictor.ask(origin.target("/a.jpg"))
      try pictor.waitFor("it is there") { $0.downloads.running + $0.downloads.waiting == index + 1 }
      return client
    }
    let refused = try pictor.get(origins[3].target("/a.jpg"))
    #expect(refused.status == 503 && refused.text.contains("\"overloaded\""))
    #expect(refused["retry-after"] == "1")
    #expect(origins[2].totalRequests == 0)
    gate.open()
    for client in clients { #expect(try client.readAnswer().status == 200) }
  }

  @Test(arguments: [("fifo", "bfcdae"), ("lifo", "fbdcea")])
  func `downloads start by priority, and a participant can raise it`(
    order: String, expected: String
  ) throws {
    // Given: one slot, which is in use
    let pictor = try PictorProcess(
      in: folder,
      PictorProcess.operated + [
        "--download.limit_per_host", "1", "--download.order", order,
        "--server.allow", "priority=high",
      ])
    let gate = Gate()
    let image = try TestImages.jpeg(width: 30, height: 20)
    origin.route("/p.jpg") { $0.number == 1 ? .hold(gate, then: .ok(image)) : .ok(image) }
    var clients = [try pictor.ask(origin.target("/p.jpg"))]
    try pictor.waitFor("it runs") { $0.downloads.running == 1 }
    // When
    let waiting = [
      ("a", "&priority=low"), ("b", "&priority=low"), ("c", ""), ("d", "&priority=normal"),
      ("e", "&priority=low"), ("f", "&priority=high"),
    ]
    for (index, (name, priority)) in waiting.enumerated() {
      clients.append(try pictor.ask(origin.target("/p.jpg?\(name)", adding: priority)))
      try pictor.waitFor("\(name) waits") { $0.downloads.waiting == index + 1 }
    }
    // A high-priority request joins b, which arrived before f; a low one joins f without effect.
    for (name, priority) in [("b", "high"), ("f", "low")] {
      clients.append(
        try pictor.ask(origin.target("/p.jpg?\(name)", adding: "&w=10&priority=\(priority)")))
    }
    try blockUntil("b is raised") {
      try pictor.downloads().count { $0.priority == "high" && $0.waiters == 2 } == 2
    }
    gate.open()
    for client in clients { #expect(try client.readAnswer().status == 200) }
    // Then
    let served = origin.received(at: "/p.jpg").dropFirst().map { $0.target.suffix(1) }
    #expect(served.joined() == expected)
  }

  // MARK: Time-outs and retries

  @Test func `connecting and the first byte have separate time-outs`() throws {
    // Given
    let pictor = try PictorProcess(
      in: folder, ["--download.connect_timeout", "1s", "--download.first_byte_timeout", "300ms"])
    // The origin accepts TLS connections and never responds, so no request can be sent.
    let deaf = try Origin(answers: false)
    origin.route("/silent", to: .silence)
    // When
    let clients = [
      try pictor.ask("/image?url=\(encoded("https://127.0.0.1:\(deaf.port)/a.jpg"))"),
      try pictor.ask(origin.target("/silent")),
    ]
    // Then: all end before the transfer's time-out of 15 s, as the log confirms
    for client in clients {
      let answer = try client.readAnswer()
      #expect(answer.status == 504 && answer.text.contains("\"source_timeout\""), "\(answer.text)")
    }
    #expect(pictor.log.contains("SSL connection timeout"), "\(pictor.log)")
    #expect(pictor.log.contains("first-byte time-out"), "\(pictor.log)")
    #expect(try pictor.stats().downloads.failed == ["source_timeout": 2])
  }

  @Test func `only failures that are usually brief are retried, once`() throws {
    // Given
    let pictor = try PictorProcess(
      in: folder, ["--download.breaker_threshold", "0"])
    let image = try TestImages.jpeg(width: 30, height: 20)
    let replies: [(path: String, reply: OriginReply, requests: Int, status: Int)] = [
      ("/503-soon", .status(503, headers: ["Retry-After: 1"]), 2, 200),
      ("/502-now", .status(502, headers: ["Retry-After: 0"]), 2, 200),
      ("/504-now", .status(504, headers: ["Retry-After: 0"]), 2, 200),
      ("/503-late", .status(503, headers: ["Retry-After: 60"]), 1, 502),
      ("/503", .status(503), 1, 502), ("/500", .status(500, headers: ["Retry-After: 0"]), 1, 502),
      ("/429", .status(429, headers: ["Retry-After: 0"]), 1, 502),
      ("/midway", .reset(after: Array(image.prefix(50)), declaring: image.count), 1, 502),
    ]
    for (path, reply, _, _) in replies {
      origin.route(path) { $0.number == 1 ? reply : .ok(image) }
    }
    // A separate origin, because curl itself retries on a reused connection that was closed.
    let resetting = try Origin()
    resetting.route("/reset") { $0.number == 1 ? .resetBeforeHead : .ok(image) }
    // When
    let reset = try pictor.ask(resetting.target("/reset"))
    let clients = try replies.map { try pictor.ask(origin.target($0.path)) }
    // Then
    #expect(try reset.readAnswer().status == 200)
    #expect(resetting.totalRequests == 2)
    for ((path, _, requests, status), client) in zip(replies, clients) {
      #expect(try client.readAnswer().status == status, "\(path)")
      #expect(origin.requests(to: path) == requests, "\(path)")
    }
    #expect(try pictor.stats().downloads.retries == 4)
  }

  // MARK: Circuit breaker

  @Test func `a host with five failures in a row is not requested, and other hosts are`() throws {
    let pictor = try PictorProcess(in: folder)
    let other = try Origin()
    other.serve("/a.jpg", bytes: try TestImages.jpeg(width: 30, height: 20))
    let down = try ClosedPort()
    let target = "/image?url=\(encoded(down.url("/a.jpg")))"
    for _ in 0..<5 { #expect(try pictor.get(target).status == 502) }
    #expect(try pictor.stats().downloads.circuitsOpen == 1)
    let refused = try pictor.get(target)
    #expect(refused.status == 502 && refused.text.contains("\"source_unreachable\""))
    #expect(refused["cache-control"] == "no-store")
    #expect(try pictor.get(other.target("/a.jpg")).status == 200)
  }

  @Test func `errors of one URL do not block other images of its host`() throws {
    let pictor = try PictorProcess(in: folder)
    origin.serve("/good.jpg", bytes: try TestImages.jpeg(width: 30, height: 20))
    origin.route("/bad.jpg", to: .status(500))
    for _ in 0..<30 { #expect(try pictor.get(origin.target("/bad.jpg")).status == 502) }
    #expect(try pictor.stats().downloads.circuitsOpen == 0)
    #expect(try pictor.get(origin.target("/good.jpg")).status == 200)
  }

  @Test func `with an open circuit, cached and stale images are served`() throws {
    // Given a fresh image and a stale one, and a host that refuses connections
    let pictor = try PictorProcess(in: folder)
    let image = try TestImages.jpeg(width: 30, height: 20)
    origin.route("/fresh.jpg", to: .ok(image, headers: ["Cache-Control: max-age=1000"]))
    origin.route("/stale.jpg", to: .ok(image, headers: ["Cache-Control: max-age=0"]))
    for path in ["/fresh.jpg", "/stale.jpg"] {
      #expect(try pictor.get(origin.target(path, adding: "&w=20")).status == 200)
    }
    origin.stop()
    for number in 0..<5 { _ = try pictor.get(origin.target("/down.jpg?\(number)")) }
    #expect(try pictor.stats().downloads.circuitsOpen == 1)
    let reborn = try Origin(port: origin.port)
    // Then they are served in cached sizes and in others
    for path in ["/fresh.jpg", "/stale.jpg"] {
      for width in [20, 10] {
        let answer = try pictor.get(origin.target(path, adding: "&w=\(width)"))
        #expect(answer.status == 200, "\(path) \(width)")
      }
    }
    #expect(reborn.totalRequests == 0)
  }

  // MARK: What the origin sees

  @Test func `an origin receives Pictor's own headers and none of a client's`() throws {
    let pictor = try PictorProcess(in: folder, ["--server.id", "me"])
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 30, height: 20))
    let answer = try pictor.connect().get(
      origin.target("/a.jpg"),
      headers: [
        "Cookie": "a=b", "Authorization": "Basic YTpi", "Referer": "http://a/", "Accept": "*/*",
        "User-Agent": "browser", "X-Forwarded-For": "1.2.3.4", "If-None-Match": "\"1\"",
      ])
    #expect(answer.status == 200)
    let headers = try #require(origin.received(at: "/a.jpg").first).headers
    #expect(
      headers == [
        "host": "127.0.0.1:\(origin.port)", "accept": "image/avif,image/webp,image/*;q=0.8",
        "accept-encoding": "identity", "user-agent": "Pictor/\(pictorVersion)",
        "via": "1.1 me", "cdn-loop": "me",
      ])
  }

  @Test func `five redirects are followed, also to other hosts, and a sixth is refused`() throws {
    let pictor = try PictorProcess(in: folder)
    let other = try Origin()
    other.serve("/0.jpg", bytes: try TestImages.jpeg(width: 30, height: 20))
    origin.route("/1.jpg", to: .redirect(to: other.url("/0.jpg"), status: 301))
    for (number, status) in zip(2...6, [302, 303, 307, 308, 302]) {
      origin.route("/\(number).jpg", to: .redirect(to: "/\(number - 1).jpg", status: status))
    }
    #expect(try pictor.get(origin.target("/5.jpg")).status == 200)
    #expect(origin.totalRequests == 5 && other.totalRequests == 1)
    let refused = try pictor.get(origin.target("/6.jpg"))
    #expect(refused.status == 502 && refused.text.contains("\"too_many_redirects\""))
    #expect(origin.totalRequests == 11 && other.totalRequests == 1)
  }

  @Test func `each redirect must be allowed by address and by name`() throws {
    // Given: a forbidden address of this machine, and a name that is not on the list
    let pictor = try PictorProcess(
      in: folder,
      [
        "--download.allow_networks", "127.0.0.1/32", "--download.allow_hosts",
        "127.0.0.1,127.0.0.2",
      ])
    let everywhere = try Origin(on: "0.0.0.0")
    everywhere.serve("/a.jpg", bytes: try TestImages.jpeg(width: 30, height: 20))
    origin.route("/good.jpg", to: .redirect(to: everywhere.url("/a.jpg", host: "127.0.0.1")))
    origin.route("/inside.jpg", to: .redirect(to: everywhere.url("/a.jpg", host: "127.0.0.2")))
    origin.route("/name.jpg", to: .redirect(to: everywhere.url("/a.jpg", host: "localhost")))
    for path in ["/inside.jpg", "/name.jpg"] {
      let answer = try pictor.get(origin.target(path))
      #expect(answer.status == 403 && answer.text.contains("\"forbidden_source\""), "\(path)")
    }
    #expect(everywhere.totalRequests == 0)
    #expect(try pictor.get(origin.target("/good.jpg")).status == 200)
  }
}
