// FleetLeasesTests: machines that share work through a real Redis, which fails.

import Caching
import Model
import Platform
import Telemetry
import TestSupport
import Testing

@testable import Sharing

/// A machine with leases.
private final class Machine: Sendable {
  let fleet: Fleet

  init(
    _ server: String, life: Duration, renewal: Duration, wait: Duration, poll: Duration
  ) throws {
    var settings = FleetSettings()
    settings.timeout = .seconds(10)
    settings.retryInterval = .milliseconds(20)
    settings.leaseWait = wait
    let address = try #require(RedisAddress(server))
    var configuration = FleetConfiguration(address: address, settings: settings, folder: nil)
    configuration.leaseTiming.life = life
    configuration.leaseTiming.renewal = renewal
    configuration.leaseTiming.poll = poll
    fleet = try Fleet(
      configuration, coding: StoredVariantCoding(memory: .unlimited),
      sourceCoding: StoredSourceCoding(), log: .silent)
    fleet.start { _ in }
  }

  deinit { Task { [fleet] in await fleet.stop() } }

  var figures: FleetFigures { fleet.figures }

  func lease(_ key: CacheKey, waits: Bool = true) async -> LeaseOutcome<Variant> {
    await fleet.lease(
      LeaseRequest(key: key, waits: waits, generation: { 0 }, accepts: { _ in true }))
  }

  /// Takes a lease that is free.
  func take(_ key: CacheKey) async throws -> any WorkLease {
    guard case .held(let lease) = await lease(key) else { throw NotHeld() }
    return lease
  }

  func look(_ key: CacheKey, takingLease: Bool = true) async -> SharedLookup {
    await fleet.look(for: key, generation: 0, withFailure: true, takingLease: takingLease)
  }

  func store(_ key: CacheKey) throws {
    let info = VariantInfo(
      .image(RenderedImage(format: .jpeg, size: PixelSize(width: 1, height: 1), density: 1)),
      etag: "\"1\"", freshness: Freshness(receivedAt: .now, lifetime: 600))
    let body = [UInt8]([0xff, 0xd8, 0xff, 0xe0, 0, 16]).withUnsafeBytes { ImageBytes(copying: $0) }
    fleet.store(
      Variant(key: key, info: info, body: .memory(body)), since: try #require(fleet.mark))
  }
}

extension LeaseOutcome {
  fileprivate var name: String {
    switch self {
    case .none: "none"
    case .held: "held"
    case .shared: "shared"
    case .failed: "failed"
    }
  }
}

@Suite(.onOwnThreads) struct FleetLeasesTests {
  private let server: RedisServer
  private let key: CacheKey

  init() throws {
    server = try RedisServer()
    key =
      ImageRequest(
        source: try SourceURL(parsing: "http://origin/a.jpg"), transform: Transform()
      ).key
  }

  private func machine(
    life: Duration = .seconds(60), renewal: Duration = .seconds(60),
    wait: Duration = .seconds(60), poll: Duration = .seconds(60)
  ) async throws -> Machine {
    let machine = try Machine(
      server.address, life: life, renewal: renewal, wait: wait, poll: poll)
    try await eventually("the machine has read the stream") {
      machine.fleet.isSynchronised && machine.figures.isConnected
        && machine.fleet.client.isReady(.notices)
    }
    return machine
  }

  /// Begins to wait, and returns once the machine has asked again while it listens. From then on only a notice, a poll
  /// or the bound ends the wait; before, a lease that ends is taken.
  private func waiting(_ machine: Machine) async throws -> Task<LeaseOutcome<Variant>, Never> {
    let before = try server.calls(of: "eval")
    let task = Task { [key] in await machine.lease(key) }
    try await eventually("the machine waits") { try server.calls(of: "eval") >= before + 2 }
    return task
  }

  @Test func `of three machines one works, and the others get what it wrote`() async throws {
    let (a, b, c) = (try await machine(), try await machine(), try await machine())
    let lease = try await a.take(key)
    let waits = [try await waiting(b), try await waiting(c)]
    try a.store(key)
    lease.end(admitting: nil)
    for wait in waits { #expect(await wait.value.name == "shared") }
    #expect(b.figures.leasesServed == 1 && c.figures.leasesServed == 1)
    // It learns of its write after the others.
    try await eventually { a.figures.leasesHeld == 0 && a.figures.stores == 1 }
    // The lease, the set and the notices are gone.
    try await eventually { try server.command("KEYS", "pictor:[lwn]:*") == "*0\r\n" }
  }

  @Test func `a look-up takes a free lease in its round trip, and none beside a variant`()
    async throws
  {
    let (a, b) = (try await machine(), try await machine())
    #expect(await a.look(key, takingLease: false).lease == nil)
    let calls = try server.calls(of: "eval")
    let lease = try #require(await a.look(key).lease)
    #expect(try server.calls(of: "eval") == calls + 1 && a.figures.leasesHeld == 1)
    // Another machine waits for it.
    #expect(await b.look(key).lease == nil)
    let wait = try await waiting(b)
    try a.store(key)
    lease.end(admitting: nil)
    #expect(await wait.value.name == "shared")
    try await eventually { a.figures.leasesHeld == 0 && a.figures.stores == 1 }
    let found = await b.look(key)
    #expect(found.variant != nil && found.lease == nil && b.figures.leasesHeld == 0)
    try await eventually { try server.command("KEYS", "pictor:[lwn]:*") == "*0\r\n" }
  }

  @Test func `the rights in the documentation suffice for a look-up and its lease`() async throws {
    let rights =
      "on >secret ~pictor:* -@all +auth +select +ping +eval +get +set +del +pttl +xlen +xadd +xrange +xrevrange +xread "
      + "+sadd +scard +smembers +pexpire +rpush +ltrim +lpop +blpop +config|get"
    try server.command(
      ["ACL", "SETUSER", "pictor"] + rights.split(separator: " ").map(String.init))
    let machine = try Machine(
      "redis://pictor:secret@127.0.0.1:\(try server.listen())", life: .seconds(60),
      renewal: .seconds(60), wait: .seconds(60), poll: .seconds(60))
    try await eventually { machine.fleet.isSynchronised && machine.figures.isConnected }
    let lease = try #require(await machine.look(key).lease)
    try machine.store(key)
    lease.end(admitting: nil)
    try await eventually { machine.figures.stores == 1 && machine.figures.leasesHeld == 0 }
    let found = await machine.look(key)
    #expect(found.variant != nil && found.lease == nil && machine.figures.errors == 0)
  }

  @Test func `a look-up that is cancelled leaves no lease`() async throws {
    let a = try await machine()
    server.freeze()
    let look = Task { [key] in await a.look(key).lease == nil }
    try await eventually { a.figures.commands > 0 }
    look.cancel()
    server.thaw()
    #expect(await look.value)
    try await eventually {
      try a.figures.leasesHeld == 0 && server.command("KEYS", "pictor:l:*") == "*0\r\n"
    }
  }

  @Test func `one that comes when the work is done takes no lease`() async throws {
    let (a, b) = (try await machine(), try await machine())
    let lease = try await a.take(key)
    try a.store(key)
    lease.end(admitting: nil)
    try await eventually { a.figures.stores == 1 }
    #expect(await b.lease(key).name == "shared")
    try await eventually { try server.command("KEYS", "pictor:l:*") == "*0\r\n" }
  }

  @Test func `work without a result to share lets all others work at once`() async throws {
    let (a, b, c) = (try await machine(), try await machine(), try await machine())
    let lease = try await a.take(key)
    let waits = [try await waiting(b), try await waiting(c)]
    lease.end(admitting: nil)
    for wait in waits { #expect(await wait.value.name == "none") }
  }

  @Test func `a machine that dies costs others its lease`() async throws {
    let (a, b) = (
      try await machine(life: .milliseconds(500)),
      try await machine(life: .milliseconds(500), poll: .milliseconds(20))
    )
    _ = try await a.take(key)
    a.fleet.client.stop()
    #expect(await b.lease(key).name == "held")
  }

  @Test func `a machine that stops frees its leases`() async throws {
    let (a, b) = (try await machine(), try await machine())
    _ = try await a.take(key)
    let wait = try await waiting(b)
    await a.fleet.stop()
    #expect(await wait.value.name == "none")
  }

  @Test func `a lease of long work is renewed`() async throws {
    // Given a lease of a minute, of which half has passed
    let (a, b) = (try await machine(renewal: .milliseconds(20)), try await machine())
    let lease = try await a.take(key)
    try server.command("PEXPIRE", "pictor:l:" + digest, "30000")
    // Then it has more time again
    try await eventually {
      let reply = try server.command("PTTL", "pictor:l:" + digest)
      return try #require(Int(reply.dropFirst().prefix { $0.isNumber })) > 30_000
    }
    #expect(await b.lease(key, waits: false).name == "none")
    lease.end(admitting: nil)
    try await eventually { try server.command("KEYS", "pictor:l:*") == "*0\r\n" }
    #expect(a.figures.leasesLost == 0)
  }

  @Test func `a lease that ends without a notice is found by polling`() async throws {
    let (a, b) = (try await machine(), try await machine(poll: .milliseconds(20)))
    let lease = try await a.take(key)
    let wait = try await waiting(b)
    try server.command("DEL", "pictor:l:" + digest)
    #expect(await wait.value.name == "held")
    lease.end(admitting: nil)
    // It frees its own lease only.
    #expect(try server.command("EXISTS", "pictor:l:" + digest) == ":1\r\n")
  }

  @Test func `a wait has a bound`() async throws {
    let (a, b) = (
      try await machine(), try await machine(wait: .milliseconds(50), poll: .milliseconds(20))
    )
    let lease = try await a.take(key)
    #expect(await b.lease(key).name == "none")
    #expect(b.figures.leasesTimedOut == 1)
    // Who has waited for the variant does not wait for its source, nor for another variant.
    #expect(await b.lease(key).name == "none")
    #expect(b.figures.leasesTimedOut == 1 && b.figures.leasesWaited == 1)
    lease.end(admitting: nil)
  }

  @Test func `Redis that dies during a wait ends it`() async throws {
    let (a, b) = (try await machine(), try await machine(poll: .milliseconds(20)))
    let lease = try await a.take(key)
    let wait = try await waiting(b)
    server.kill()
    #expect(await wait.value.name == "none")
    #expect(b.figures.leasesTimedOut == 0)
    lease.end(admitting: nil)
    #expect(await a.lease(key).name == "none")
  }

  @Test func `a cancelled wait ends at once`() async throws {
    let (a, b) = (try await machine(), try await machine())
    let lease = try await a.take(key)
    let wait = try await waiting(b)
    wait.cancel()
    #expect(await wait.value.name == "none")
    lease.end(admitting: nil)
  }

  @Test func `a variant that is purged during the wait is not taken`() async throws {
    let (a, b) = (try await machine(), try await machine())
    let lease = try await a.take(key)
    let wait = try await waiting(b)
    let url = try SourceURL(parsing: "http://origin/a.jpg")
    // The variant has the mark of before the purge.
    let number = b.fleet.beginPurge(.url(url))
    try a.store(key)
    lease.end(admitting: nil)
    #expect(await wait.value.name == "held")
    try await b.fleet.publish(.url(url), number: number, isDurable: true)
  }

  @Test func `a machine that has lost its lease overwrites nothing`() async throws {
    let a = try await machine()
    let lease = try await a.take(key)
    try server.command("SET", "pictor:l:" + digest, "of another machine")
    try a.store(key)
    try await eventually { a.figures.dropped == 1 }
    lease.end(admitting: nil)
    #expect(a.figures.stores == 0 && a.figures.leasesLost == 1 && a.figures.leasesHeld == 0)
    #expect(try server.command("EXISTS", "pictor:v:" + digest) == ":0\r\n")
    #expect(try server.command("GET", "pictor:l:" + digest).contains("of another machine"))
  }

  @Test func `a variant that waits for a second request is shared if a machine waits`()
    async throws
  {
    let (a, b) = (try await machine(), try await machine())
    let lease = try await a.take(key)
    let wait = try await waiting(b)
    lease.end { [key] in try? a.store(key) }
    #expect(await wait.value.name == "shared")
    try await eventually { a.figures.leasesHeld == 0 }
    // Without a wait it is not.
    try server.command("DEL", "pictor:v:" + digest)
    let other = try await a.take(key)
    let calls = Counter()
    other.end { calls.add() }
    try await eventually { a.figures.leasesHeld == 0 }
    #expect(calls.value == 0)
    #expect(try server.command("KEYS", "pictor:l:*") == "*0\r\n")
  }

  @Test func `what is no notice is left out`() {
    let commands = LeaseCommands(prefix: "p:", machine: "m", life: 1_000)
    let good = LeaseNotice(.shared, digest)
    #expect(LeaseNotice(good.text) == good)
    let replies: [RedisReply] = [
      .list([.bytes(Array("p:n:m".utf8)), .bytes(Array(good.text.utf8))]),
      .list([.bytes(Array("x".utf8)), .integer(1), .none, .bytes([0xff])]),
    ]
    #expect(commands.notices(in: replies) == [good])
    #expect(commands.notices(in: [.none, .none]).isEmpty)
    #expect(commands.notices(in: []).isEmpty)
  }

  private var digest: String { SharedEntry.digest(Array(key.text.utf8)[...]) }
}
