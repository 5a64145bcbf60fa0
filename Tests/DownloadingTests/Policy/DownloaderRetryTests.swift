// DownloaderRetryTests: tests of retries and the first-byte time-out in Downloader.

import Core
import Downloading
import TestSupport
import Testing

@Suite(.onOwnThreads) struct DownloaderRetryTests {
  private let body: [UInt8] = [1, 2, 3]

  private func makeRetryingDownloader(
    _ change: (inout DownloaderConfiguration) -> Void = { _ in }
  ) throws -> Downloader {
    try makeDownloader {
      $0.retries = 1
      $0.retryDelay = .milliseconds(5)
      change(&$0)
    }
  }

  @Test func `a connection that breaks before the first byte is retried once`() async throws {
    let downloader = try makeRetryingDownloader()
    for reply in [OriginReply.resetBeforeHead, .closeBeforeHead] {
      // Given: a separate origin, because curl itself retries on a reused connection that was
      // closed
      let origin = try Origin()
      origin.route("/a") { [body] in $0.number == 1 ? reply : .ok(body) }
      // Then
      #expect(try await downloader.load(origin.url("/a")).file.bytes == body)
      #expect(origin.requests(to: "/a") == 2)
    }
    #expect(downloader.figures.retries == 2)
    #expect(downloader.figures.succeeded == 2 && downloader.figures.failed == [:])
  }

  @Test func `a load is retried exactly as often as configured`() async throws {
    let origin = try Origin()
    origin.route("/a", to: .resetBeforeHead)
    for retries in [0, 1, 3] {
      let before = origin.requests(to: "/a")
      let downloader = try makeRetryingDownloader { $0.retries = retries }
      #expect(await downloader.failure(of: origin.url("/a"))?.code == "source_unreachable")
      #expect(origin.requests(to: "/a") - before == 1 + retries)
      #expect(downloader.figures.retries == retries)
      #expect(downloader.figures.failed == ["source_unreachable": 1])
    }
  }

  @Test(arguments: [0, 1, 2])
  func `a broken reused connection counts as a failure like any other`(retries: Int) async throws {
    // Given: the first response keeps its connection open; all later requests see it closed
    let origin = try Origin()
    origin.serve("/a", bytes: body)
    origin.route("/b", to: .closeBeforeHead)
    let downloader = try makeRetryingDownloader { $0.retries = retries }
    _ = try await downloader.load(origin.url("/a"))
    // When
    let failure = await downloader.failure(of: origin.url("/b"))
    // Then
    #expect(failure?.code == "source_unreachable")
    #expect(origin.requests(to: "/b") == 1 + retries)
    #expect(origin.received(at: "/b").first?.connection == 1)
  }

  @Test func `unresolvable names and refused ports are retried once`() async throws {
    let closed = try ClosedPort()
    let refused = closed.url("/a")
    let downloader = try makeRetryingDownloader()
    for url in [refused, "http://nobody.invalid/a"] {
      #expect(await downloader.failure(of: url)?.code == "source_unreachable")
    }
    #expect(downloader.figures.retries == 2)
  }

  @Test(arguments: [502, 503, 504])
  func `a status 502, 503 or 504 with a short Retry-After is retried once`(_ status: Int)
    async throws
  {
    let origin = try Origin()
    origin.route("/a") { [body] request in
      request.number == 1 ? .status(status, headers: ["Retry-After: 0"]) : .ok(body)
    }
    let downloader = try makeRetryingDownloader()
    #expect(try await downloader.load(origin.url("/a")).file.bytes == body)
    #expect(origin.requests(to: "/a") == 2)
  }

  @Test func `other failures are not retried`() async throws {
    // Given
    let origin = try Origin()
    let forbidden = try Origin(on: "::1")
    origin.route("/none", to: .status(503))
    origin.route("/long", to: .status(503, headers: ["Retry-After: 60"]))
    origin.route("/500", to: .status(500, headers: ["Retry-After: 0"]))
    origin.route("/404", to: .status(404, headers: ["Retry-After: 0"]))
    origin.route("/half", to: .raw(Array("HTTP/1.1 200 OK\r\nContent-Ty".utf8)))
    origin.route("/nonsense", to: .raw(Array("hello\r\n\r\n".utf8)))
    origin.route("/cut", to: .truncated(body, declaring: 9))
    origin.route("/private", to: .redirect(to: forbidden.url("/a")))
    let downloader = try makeRetryingDownloader { $0.allowedNetworks.removeLast() }
    // Then
    for path in ["/none", "/long", "/500", "/404", "/half", "/nonsense", "/cut", "/private"] {
      _ = await downloader.failure(of: origin.url(path))
      #expect(origin.requests(to: path) == 1, "\(path)")
    }
    #expect(downloader.figures.retries == 0)
  }

  @Test func `an error carries the origin's Retry-After in seconds`() async throws {
    let origin = try Origin()
    origin.route("/a", to: .status(503, headers: ["Retry-After: 90"]))
    origin.route("/b", to: .status(429, headers: ["Retry-After: soon"]))
    let downloader = try makeRetryingDownloader()
    #expect(
      await downloader.failure(of: origin.url("/a")) == .sourceError(status: 503, retryAfter: 90))
    #expect(await downloader.failure(of: origin.url("/b")) == .sourceError(status: 429))
  }

  @Test func `after a redirect only the failed hop is retried`() async throws {
    let origin = try Origin()
    let other = try Origin()
    origin.route("/a", to: .redirect(to: other.url("/b")))
    other.route("/b") { [body] in $0.number == 1 ? .resetBeforeHead : .ok(body) }
    #expect(try await makeRetryingDownloader().load(origin.url("/a")).file.bytes == body)
    #expect(origin.requests(to: "/a") == 1)
    #expect(other.requests(to: "/b") == 2)
  }

  @Test func `a load keeps its slot while it waits for a retry, and can be cancelled then`()
    async throws
  {
    // Given: a retry that is a long time away
    let origin = try Origin()
    origin.route("/a", to: .resetBeforeHead)
    origin.serve("/b", bytes: body)
    let downloader = try makeRetryingDownloader {
      $0.limit = 1
      $0.timeout = .seconds(3_600)
      $0.retryDelay = .seconds(1_000)
    }
    let failing = Task { try await downloader.load(origin.url("/a")) }
    try await eventually("it failed once") {
      origin.requests(to: "/a") == 1 && origin.openConnections == 0
    }
    async let next = downloader.load(origin.url("/b"))
    try await eventually("the next one waits") { downloader.figures.waiting == 1 }
    #expect(downloader.figures.running == 1 && origin.requests(to: "/b") == 0)
    // When
    failing.cancel()
    // Then
    #expect(await failing.result.failure as? ImageError == .cancelled)
    #expect(try await next.file.bytes == body)
  }

  @Test func `a connection that exceeds the connect time-out is retried once`() async throws {
    // Given: a port that accepts TLS connections and never responds
    let deaf = try Origin(answers: false)
    let downloader = try makeRetryingDownloader { $0.connectTimeout = .milliseconds(200) }
    // Then
    let failure = await downloader.failure(of: "https://127.0.0.1:\(deaf.port)/a")
    #expect(failure?.code == "source_timeout")
    #expect(failure?.decidingKey == "download.connect_timeout")
    #expect(downloader.figures.retries == 1)
  }

  @Test func `the first-byte time-out ends a response that has not begun, not one that has`()
    async throws
  {
    // Given
    let origin = try Origin()
    let gate = Gate()
    origin.route("/silence", to: .silence)
    origin.route("/moved", to: .redirect(to: "/silence"))
    origin.route("/held", to: .ok(body, holdingAfter: 1, at: gate))
    let downloader = try makeRetryingDownloader { $0.firstByteTimeout = .seconds(2) }
    async let held = downloader.load(origin.url("/held"))
    try await eventually("its head is here") {
      downloader.downloads().first?.received == 1
    }
    // When: two loads wait for their first byte
    for path in ["/silence", "/moved"] {
      let failure = await downloader.failure(of: origin.url(path))
      #expect(failure?.code == "source_timeout")
      #expect(failure?.logDetail?.contains("first-byte") == true)
      #expect(failure?.decidingKey == "download.first_byte_timeout")
    }
    // Then
    gate.open()
    #expect(try await held.file.bytes == body)
    #expect(origin.requests(to: "/silence") == 2)
    #expect(downloader.figures.retries == 0)
  }
}
