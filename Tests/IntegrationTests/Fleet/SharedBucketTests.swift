// SharedBucketTests: real programs that share variants through a bucket, beside a real Redis.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) struct SharedBucketTests {
  private let machines: FleetMachines
  private let bucket: S3Server
  private let secrets: TemporaryFolder
  private var server: RedisServer { machines.server }

  init() throws {
    machines = try FleetMachines()
    bucket = try S3Server()
    secrets = try TemporaryFolder()
    try secrets.write("secret", bytes: Array(S3Server.secret.utf8))
  }

  /// Starts a machine whose variants are all too large for Redis, unless `options` say otherwise.
  private func start(_ number: Int, _ options: [String] = []) throws -> PictorProcess {
    try machines.start(
      number,
      [
        "--fleet.s3.bucket", "shared", "--fleet.s3.endpoint", bucket.endpoint,
        "--fleet.s3.region", S3Server.region, "--fleet.s3.access_key", S3Server.accessKey,
        "--fleet.s3.secret_key", "file:\(secrets.path)/secret",
        "--fleet.variant_limit", "10B",
      ] + options)
  }

  private func figures(_ pictor: PictorProcess) throws -> Figure {
    try machines.figures(pictor).s3
  }

  /// Renders a variant, and waits until it is shared.
  private func share(from pictor: PictorProcess) throws -> HTTPAnswer {
    let answer = try machines.get(pictor)
    #expect(answer["Cache-Status"]?.contains("fwd=uri-miss") == true)
    try blockUntil("the variant is written") {
      try machines.figures(pictor).stores == 1 && figures(pictor).stores == 1
    }
    return answer
  }

  /// The name of the variant's entry in Redis.
  private func name() throws -> String {
    try #require(
      try server.command("KEYS", "pictor:v:*").split(separator: "\r\n").last.map(String.init))
  }

  @Test func `a variant too large for Redis is rendered once, and read from the bucket`() throws {
    let first = try start(0)
    let second = try start(1)
    let rendered = try share(from: first)
    // Redis says where it is, and has none of its bytes.
    func length(of name: String) throws -> Int {
      try #require(Int(try server.command("STRLEN", name).dropFirst().prefix { $0.isNumber }))
    }
    #expect(try length(of: name()) == 82 + length(of: "pictor:epoch"))
    let shared = try machines.get(second)
    #expect(shared["Cache-Status"]?.contains("hit; detail=shared") == true)
    #expect(shared.body == rendered.body && shared["ETag"] == rendered["ETag"])
    #expect(try machines.stats(second).downloads.succeeded == 0)
    #expect(try machines.figures(second).hits == 1 && figures(second).hits == 1)
    #expect(try figures(second).stores == 0)
    #expect(bucket.signatureProblems == [])
    // A kind, two digits, the rest.
    #expect(bucket.objects.keys.first?.hasPrefix("pictor/v/") == true && bucket.objects.count == 1)
  }

  @Test func `a small variant is in both, and the bucket has what Redis has evicted`() throws {
    let first = try start(0, ["--fleet.variant_limit", "1MiB"])
    _ = try share(from: first)
    try server.command("DEL", try name())
    let second = try start(1, ["--fleet.variant_limit", "1MiB"])
    #expect(try machines.cacheStatus(second).contains("hit; detail=shared"))
    #expect(try machines.figures(second).hits == 1 && figures(second).hits == 1)
  }

  @Test func `a purge on one machine refuses the entries of another`() throws {
    let first = try start(0)
    _ = try share(from: first)
    let second = try start(1)
    try machines.purge(second)
    // What Redis says is refused, and the bucket is not asked.
    #expect(try machines.cacheStatus(second).contains("fwd=uri-miss"))
    #expect(try machines.figures(second).refused == 1)
    #expect(try figures(second).hits == 0)
  }

  @Test func `a purge refuses an object that Redis knows nothing of`() throws {
    let first = try start(0)
    _ = try share(from: first)
    let second = try start(1)
    try server.command("DEL", try name())
    try machines.purge(first)
    try blockUntil("the purge is applied") { try machines.figures(second).purgesApplied == 1 }
    #expect(try machines.cacheStatus(second).contains("fwd=uri-miss"))
    #expect(try figures(second).hits == 1 && figures(second).refused == 1)
    #expect(try machines.figures(second).refused == 1)
  }

  @Test func `when Redis has lost its data, objects of before are refused`() throws {
    let first = try start(0)
    let rendered = try share(from: first)
    #expect(try first.end() == 0)
    server.kill(losingData: true)
    try server.start()
    // Purges may be lost with it.
    let second = try start(1)
    #expect(try machines.cacheStatus(second).contains("fwd=uri-miss"))
    #expect(try figures(second).hits == 1 && figures(second).refused == 1)
    // And what is rendered now is shared again, under the same name.
    try blockUntil("the variant is written") { try figures(second).stores == 1 }
    let third = try start(2)
    let shared = try machines.get(third)
    #expect(shared["Cache-Status"]?.contains("hit; detail=shared") == true)
    #expect(shared.body == rendered.body && bucket.objects.count == 1)
  }

  @Test func `a damaged object is a miss`() throws {
    let first = try start(0)
    _ = try share(from: first)
    let (name, bytes) = try #require(bucket.objects.first)
    bucket.set(name, to: bytes.dropLast() + [bytes[bytes.count - 1] ^ 1])
    let second = try start(1)
    #expect(try machines.cacheStatus(second).contains("fwd=uri-miss"))
    #expect(try figures(second).refused == 1 && machines.figures(second).hits == 0)
  }

  @Test func `a bucket that is away costs one request, and images are served`() throws {
    bucket.behave { _ in S3Server.error(503, "SlowDown") }
    let first = try start(0, ["--fleet.retry_interval", "60s"])
    for width in 1...10 { #expect(try machines.get(first, width: width).status == 200) }
    #expect(bucket.requests == 1)
    let figures = try figures(first)
    #expect(figures.ready == false && figures.failures == 1 && figures.stores == 0)
  }
}
