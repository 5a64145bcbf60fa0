// S3BucketTests: the store beside a bucket on real sockets, which fails in every way.

@testable import Core
import TestSupport
import Testing

@testable import Sharing

extension S3Outcome {
  /// The bytes of the entry, or what there is instead.
  fileprivate var text: String {
    switch self {
    case .found(let region): String(decoding: region.bytes, as: UTF8.self)
    case .absent: "absent"
    case .written, .failed, .timedOut: "unavailable"
    }
  }
}

@Suite(.onOwnThreads) struct S3BucketTests {
  private let server: S3Server

  init() throws { server = try S3Server() }

  /// A store whose time-outs a test does not reach, unless it says so.
  private func store(
    timeout: Duration = .seconds(20), interval: Duration = .seconds(600),
    endpoint: String? = nil, budget: ByteBudget = .unlimited, secret: String = S3Server.secret,
    change: (inout SharedBucketSettings) -> Void = { _ in }
  ) throws -> S3Bucket {
    var settings = SharedBucketSettings()
    settings.name = "shared"
    settings.access.endpoint = ObjectStore.endpoint(endpoint ?? server.endpoint)
    settings.access.region = S3Server.region
    settings.timeout = timeout
    settings.entryLimit = 1 << 20
    change(&settings)
    var configuration = try S3Configuration(
      settings,
      credentials: AWSCredentials(accessKey: S3Server.accessKey, secretKey: secret))
    configuration.retryInterval = interval
    return try S3Bucket(configuration, budget: budget, log: .silent)
  }

  /// A write of a text.
  private func write(_ store: S3Bucket, _ name: String, _ text: String) async -> Bool {
    await store.write(name, Array(text.utf8), lifetime: 60)
  }

  // MARK: Work

  @Test func `an entry is written, signed, with its expiry, and read`() async throws {
    let store = try store()
    #expect(await store.read("v:0123").text == "absent")
    let before = UnixTime.now.seconds
    #expect(await store.write("v:0123", Array("head and body".utf8), lifetime: 3_600))
    #expect(await store.read("v:0123").text == "head and body")
    #expect(server.signatureProblems == [])
    let put = try #require(
      server.origin.received(at: "/shared/pictor/v/01/23").first { $0.method == "PUT" })
    #expect(put.headers["content-length"] == "13" && put.headers["expect"] == nil)
    #expect(put.headers["content-type"] == "application/octet-stream")
    let got = server.origin.received(at: "/shared/pictor/v/01/23").filter { $0.method == "GET" }
    #expect(got.count == 2 && got.allSatisfy { $0.headers["range"] == nil })
    let expires = try #require(put.headers["x-amz-meta-expires"])
    let accepted = (before...UnixTime.now.seconds).map {
      AWSDate(UnixTime(seconds: $0 + 3_600), isExtended: true).text
    }
    #expect(accepted.contains(expires))
    let figures = store.figures
    #expect(figures.hits == 1 && figures.misses == 1 && figures.stores == 1)
    #expect(figures.bytes == 26 && figures.ready == true && figures.failures == 0)
  }

  @Test func `a prefix may be empty, and requests name the bucket as configured`() async throws {
    let store = try store { $0.prefix = "" }
    #expect(await write(store, "v:0123", "x"))
    #expect(server.objects.keys.sorted() == ["v/01/23"])
    let virtual = try self.store(endpoint: "http://localhost:\(server.origin.port)") {
      $0.access.addressing = .virtual
    }
    _ = await virtual.read("v:0123")
    let request = try #require(server.origin.received(at: "/pictor/v/01/23").first)
    #expect(request.headers["host"] == "shared.localhost:\(server.origin.port)")
    #expect(server.signatureProblems == [])
  }

  @Test func `connections are kept, and requests at one time are bounded`() async throws {
    let store = try store()
    let gate = Gate()
    server.behave { _ in .hold(gate, then: .ok(Array("x".utf8))) }
    let reads = (0..<40).map { number in Task { await store.read("v:\(number)").text } }
    try await eventually("eight are on their way") { server.origin.activeRequests == 8 }
    try await eventually("the others wait") { store.waiting == 32 }
    gate.open()
    for read in reads { #expect(await read.value == "x") }
    #expect(server.origin.peakRequests == 8 && server.origin.connections == 8)
  }

  @Test func `writes leave room for reads`() async throws {
    let store = try store()
    let gate = Gate()
    server.behave { $0.method == "PUT" ? .hold(gate, then: .status(200)) : nil }
    let writes = (0..<20).map { number in Task { await write(store, "v:\(number)", "x") } }
    try await eventually("four are on their way") { server.origin.activeRequests == 4 }
    // They would wait behind the writes otherwise.
    #expect(await store.read("v:0123").text == "absent")
    #expect(server.requests("PUT") == 4)
    gate.open()
    for write in writes { #expect(await write.value) }
  }

  @Test func `a body of megabytes is written and read into memory that counts`()
    async throws
  {
    let budget = ByteBudget(limit: 2 << 20)
    let store = try store(budget: budget) { $0.entryLimit = 8 << 20 }
    let bytes = (0..<(1 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    #expect(await store.write("v:0123", bytes, lifetime: 60))
    guard case .found(let region) = await store.read("v:0123") else {
      Issue.record("not found")
      return
    }
    #expect(region.bytes == bytes)
    #expect(budget.used == region.count)
    // Without room an entry is not received, and the store is not to blame.
    let other = await store.read("v:0123")
    let third = await store.read("v:0123").text
    #expect(third == "unavailable" || other.text == "unavailable")
    #expect(store.isReady && store.figures.failures == 0)
    withExtendedLifetime((region, other)) {}
  }

  // MARK: Bounds

  @Test func `entries beyond the limit are neither written nor received`() async throws {
    let store = try store { $0.entryLimit = 100 }
    #expect(await !store.write("v:0123", [UInt8](repeating: 1, count: 101), lifetime: 1))
    #expect(await !store.write("v:0123", [], lifetime: 1))
    #expect(server.requests == 0)
    #expect(await store.write("v:0123", [UInt8](repeating: 1, count: 100), lifetime: 1))
    server.set("pictor/v/01/23", to: [UInt8](repeating: 1, count: 101))
    #expect(await store.read("v:0123").text == "unavailable")
    // It is one entry's fault.
    #expect(store.isReady && store.figures.failures == 0)
  }

  @Test func `reads that find the queue full are not sent`() async throws {
    // Under the sanitizer, 264 reads take a while to begin.
    let store = try store(timeout: .seconds(120))
    let gate = Gate()
    server.behave { _ in .hold(gate, then: .ok(Array("x".utf8))) }
    let reads = (0..<8).map { number in Task { await store.read("v:a\(number)") } }
    try await eventually { server.origin.activeRequests == 8 }
    let waiting = (0..<256).map { number in Task { await store.read("v:b\(number)") } }
    try await eventually { store.waiting == 256 }
    #expect(await store.read("v:0123").text == "unavailable")
    #expect(store.isReady)
    gate.open()
    for read in reads + waiting { #expect(await read.value.text == "x") }
  }

  // MARK: Failures

  /// What a store may answer, and how often ten reads ask it: the first opens the breaker.
  private static let hostile: [(String, @Sendable (Origin.Request) -> OriginReply)] = [
    ("garbage", { _ in .raw(Array("no HTTP at all\r\n\r\n".utf8)) }),
    ("nothing", { _ in .closeBeforeHead }),
    ("reset", { _ in .resetBeforeHead }),
    ("short", { _ in .truncated(Array("abc".utf8), declaring: 10) }),
    ("reset in the body", { _ in .reset(after: Array("abc".utf8), declaring: 10) }),
    ("endless", { _ in .endlessBody }),
    ("endless fields", { _ in .endlessHeaders }),
    ("chunked", { _ in .chunked(Array("abcdef".utf8), size: 3) }),
    ("without a length", { _ in .untilClose(Array("abc".utf8)) }),
    (
      "a wrong length", { _ in .raw(Array("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nabc".utf8)) }
    ),
    ("empty", { _ in .status(200) }),
    ("500", { _ in S3Server.error(500, "InternalError") }),
    ("503", { _ in S3Server.error(503, "SlowDown") }),
    ("403", { _ in S3Server.error(403, "AccessDenied") }),
    ("400", { _ in S3Server.error(400, "AuthorizationHeaderMalformed") }),
    ("an error of megabytes", { _ in .status(503, body: [UInt8](repeating: 60, count: 4 << 20)) }),
    ("another bucket", { _ in S3Server.error(404, "NoSuchBucket") }),
    ("a redirect", { .redirect(to: "http://127.0.0.1/\($0.number)", status: 307) }),
    ("a part", { _ in .status(206, body: Array("abc".utf8)) }),
  ]

  @Test(arguments: hostile.indices)
  func `anything but an answer opens the breaker, and one request is lost`(index: Int) async throws
  {
    let (name, reply) = Self.hostile[index]
    let store = try store()
    server.behave(reply)
    for _ in 0..<10 { #expect(await store.read("v:0123").text == "unavailable", "\(name)") }
    #expect(await !write(store, "v:0123", "x"))
    #expect(server.requests == 1, "\(name)")
    #expect(!store.isReady && store.figures.failures == 1 && store.figures.unavailable == 10)
    #expect(store.figures.dropped == 1)
  }

  @Test func `bytes after the entry are not the next answer`() async throws {
    let store = try store()
    server.behave { _ in
      OriginReply([
        .send(Array("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 200 OK\r\n".utf8)),
        .send(Array("Content-Length: 3\r\n\r\nxyz".utf8)),
      ])
    }
    #expect(await store.read("v:0123").text == "abc")
    #expect(await store.read("v:4567").text == "abc")
  }

  @Test func `silence costs one time-out, however many ask`() async throws {
    // Long enough for a busy server to see the requests.
    let store = try store(timeout: .seconds(1))
    server.behave { _ in .silence }
    // Those that find no thread fail once the breaker opens.
    let reads = (0..<20).map { number in Task { await store.read("v:a\(number)").text } }
    for read in reads { #expect(await read.value == "unavailable") }
    let sent = server.requests
    #expect((1...8).contains(sent))
    for number in 0..<100 { #expect(await store.read("v:b\(number)").text == "unavailable") }
    #expect(server.requests == sent && store.figures.timedOut >= 1)
    #expect(store.figures.unavailable == 120)
  }

  @Test func `a drip ends at the same time as silence`() async throws {
    // Long enough for a busy machine: a request that waits to be sent is not timed out.
    let store = try store(timeout: .seconds(2))
    server.behave { _ in
      OriginReply([
        .send(OriginReply.head(200, headers: ["Content-Length: 100000"])),
        .drip([1], milliseconds: 5),
      ])
    }
    #expect(await store.read("v:0123").text == "unavailable")
    #expect(store.figures.timedOut == 1 && !store.isReady)
    try await eventually("its connection is closed") { server.origin.openConnections == 0 }
  }

  @Test func `a write that is not answered ends, too`() async throws {
    // A write has ten times as long.
    let store = try store(timeout: .milliseconds(200))
    server.behave { _ in .silence }
    #expect(await !write(store, "v:0123", "x"))
    #expect(store.figures.timedOut == 1 && !store.isReady)
  }

  @Test func `a refused connection is found out once`() async throws {
    let port = try ClosedPort()
    let store = try store(endpoint: "http://127.0.0.1:\(port.port)")
    for _ in 0..<10 { #expect(await store.read("v:0123").text == "unavailable") }
    #expect(store.figures.failures == 1 && !store.isReady)
  }

  @Test func `a wrong secret is found out once`() async throws {
    let store = try store(secret: "wrong")
    for _ in 0..<10 { #expect(await store.read("v:0123").text == "unavailable") }
    #expect(server.requests == 1 && store.figures.failures == 1)
  }

  @Test(arguments: [409, 412, 413, 507])
  func `an answer about one write does not stop reads`(status: Int) async throws {
    let store = try store()
    server.behave { $0.method == "PUT" ? S3Server.error(status, "XMinioStorageFull") : nil }
    #expect(await !write(store, "v:0123", "x"))
    #expect(await store.read("v:0123").text == "absent")
    #expect(store.figures.dropped == 1 && store.figures.failures == 0)
  }

  @Test(arguments: [200, 201, 204])
  func `other servers confirm a write otherwise`(status: Int) async throws {
    let store = try store()
    server.behave { $0.method == "PUT" ? .status(status) : .status(404) }
    #expect(await write(store, "v:0123", "x"))
    // A missing entry may have no code.
    #expect(await store.read("v:0123").text == "absent")
    #expect(store.isReady && store.figures.failures == 0)
  }

  // MARK: Healing

  @Test func `it heals by itself, with one request as the probe`() async throws {
    let store = try store(interval: .milliseconds(20))
    #expect(await write(store, "v:0123", "x"))
    server.behave { _ in S3Server.error(503, "SlowDown") }
    #expect(await store.read("v:0123").text == "unavailable")
    let gate = Gate()
    server.behave { _ in .hold(gate, then: .ok(Array("x".utf8))) }
    try await eventually { store.isReady }
    let before = server.requests
    let probe = Task { await store.read("v:0123").text }
    try await eventually { server.requests == before + 1 }
    #expect(!store.isReady)
    for _ in 0..<10 { #expect(await store.read("v:0123").text == "unavailable") }
    #expect(server.requests == before + 1)
    gate.open()
    #expect(await probe.value == "x")
    #expect(store.isReady && store.figures.ready == true)
  }

  @Test func `a store that restarts is used again`() async throws {
    let store = try store(interval: .milliseconds(20))
    #expect(await write(store, "v:0123", "x"))
    let (port, objects) = (server.origin.port, server.objects)
    server.origin.stop()
    #expect(await store.read("v:0123").text == "unavailable")
    let again = try S3Server(port: port, objects: objects)
    try await eventually { await store.read("v:0123").text == "x" }
    #expect(again.signatureProblems == [])
  }

  @Test func `a kept connection that the store has closed is no failure`() async throws {
    let store = try store()
    server.behave { request in
      request.method == "PUT"
        ? OriginReply([.send(OriginReply.head(200, headers: ["Content-Length: 0"])), .close]) : nil
    }
    for number in 0..<5 {
      #expect(await write(store, "v:a\(number)", "some text"))
      // Until the client's side has seen the end.
      try await eventually { server.origin.openConnections == 0 }
    }
    #expect(store.figures.failures == 0)
  }

  // MARK: The end

  @Test func `stop ends what waits and what is on its way`() async throws {
    let store = try store()
    server.behave { _ in .silence }
    let reads = (0..<20).map { number in Task { await store.read("v:\(number)").text } }
    try await eventually { server.origin.activeRequests == 8 && store.waiting == 12 }
    store.stop()
    for read in reads { #expect(await read.value == "unavailable") }
    #expect(await store.read("v:0123").text == "unavailable" && !store.isReady)
  }

  // MARK: Requests

  @Test(arguments: [
    (0, "1970-01-01T00:00:00Z"), (951_782_400, "2000-02-29T00:00:00Z"),
    (1_795_618_799, "2026-11-25T14:59:59Z"), (253_402_300_799, "9999-12-31T23:59:59Z"),
  ])
  func `times are written as RFC 3339 does`(seconds: Int, text: String) {
    #expect(AWSDate(UnixTime(seconds: seconds), isExtended: true).text == text)
  }
}
