// FleetTests: machines that share purges through a real Redis, which fails in every way.

import Caching
import Model
import Platform
import Telemetry
import TestSupport
import Testing

@testable import Sharing

/// A machine that notes what it applies.
private final class Machine: Sendable {
  let fleet: Fleet
  private let purges = Lock<[PurgeScope]>([])
  /// Scopes whose next purge fails.
  let failing = Lock<Set<PurgeScope>>([])
  /// At which purges of the tag `wait` wait.
  let gate = Gate()
  let waiting = Counter()

  init(_ server: RedisServer, in folder: TemporaryFolder?) throws {
    var settings = FleetSettings()
    settings.timeout = .seconds(10)
    settings.retryInterval = .milliseconds(20)
    let address = try #require(RedisAddress(server.address))
    fleet = try Fleet(
      FleetConfiguration(address: address, settings: settings, folder: folder?.path),
      coding: StoredVariantCoding(memory: .unlimited), sourceCoding: StoredSourceCoding(),
      log: .silent)
    fleet.start { [purges, failing, gate, waiting] scope throws(ImageError) in
      if failing.withLock({ $0.remove(scope) }) != nil { throw .internal(detail: "a full disk") }
      if scope == .tag("wait") {
        waiting.add()
        await gate.pass()
      }
      purges.withLock { $0.append(scope) }
    }
  }

  deinit { Task { [fleet] in await fleet.stop() } }

  /// What other machines purged here.
  var applied: [PurgeScope] { purges.withLock { $0 } }

  func whenSynchronised() async throws {
    try await eventually("the machine has read the stream") {
      fleet.isSynchronised && fleet.client.isReady()
    }
  }
}

@Suite(.onOwnThreads) struct FleetTests {
  private let server: RedisServer
  private let folders: [TemporaryFolder]

  init() throws {
    server = try RedisServer(["--appendonly", "yes", "--appendfsync", "always"])
    folders = try (0..<3).map { _ in try TemporaryFolder() }
  }

  private func machine(_ number: Int) async throws -> Machine {
    let machine = try Machine(server, in: folders[number])
    try await machine.whenSynchronised()
    return machine
  }

  @Test func `a purge is applied by all others, and not again by its own machine`() async throws {
    let machines = [try await machine(0), try await machine(1), try await machine(2)]
    await machines[0].fleet.purge(.tag("a"))
    await machines[1].fleet.purge(.tag("b"))
    try await eventually { machines[2].applied == [.tag("a"), .tag("b")] }
    try await eventually {
      machines[0].applied == [.tag("b")] && machines[1].applied == [.tag("a")]
    }
    #expect(machines[0].fleet.figures.purgesPublished == 1)
    #expect(machines[2].fleet.figures.purgesApplied == 2)
  }

  @Test func `a machine that was stopped applies what it missed`() async throws {
    let first = try await machine(0)
    var second: Machine? = try await machine(1)
    await second?.fleet.stop()
    second = nil
    await first.fleet.purge(.tag("a"))
    await first.fleet.purge(.tag("b"))
    second = try await machine(1)
    #expect(second?.applied == [.tag("a"), .tag("b")])
    // And not once more.
    await second?.fleet.stop()
    second = try await machine(1)
    #expect(second?.applied == [])
  }

  @Test func `purges made while Redis is away are delivered afterwards, after a restart too`()
    async throws
  {
    let second = try await machine(1)
    var first: Machine? = try await machine(0)
    server.kill()
    await first?.fleet.purge(.tag("a"))
    await first?.fleet.purge(.tag("b"))
    #expect(first?.fleet.figures.purgesWaiting == 2)
    await first?.fleet.stop()
    first = nil
    let again = try Machine(server, in: folders[0])
    #expect(again.fleet.figures.purgesWaiting == 2)
    await again.fleet.purge(.tag("c"))
    try server.start()
    try await eventually { again.fleet.figures.purgesWaiting == 0 }
    try await eventually { second.applied.suffix(3) == [.tag("a"), .tag("b"), .tag("c")] }
    // With its data, Redis has lost nothing.
    #expect(second.applied.count == 3)
  }

  @Test func `a Redis without its data is a purge of everything`() async throws {
    let first = try await machine(0)
    let second = try await machine(1)
    await first.fleet.purge(.tag("a"))
    try await eventually { second.applied == [.tag("a")] }
    server.kill(losingData: true)
    try server.start()
    try await eventually {
      second.applied == [.tag("a"), .everything] && first.applied == [.everything]
    }
    try await second.whenSynchronised()
    try await first.whenSynchronised()
    await first.fleet.purge(.tag("b"))
    try await eventually { second.applied.last == .tag("b") }
  }

  @Test(arguments: ["FLUSHALL", "DEL pictor:purges", "DEL pictor:epoch"])
  func `a stream that vanishes under its readers is a new epoch`(command: String) async throws {
    let first = try await machine(0)
    let second = try await machine(1)
    let parts = command.split(separator: " ").map(String.init)
    if parts.count == 2 {
      try server.command(parts[0], parts[1])
    } else {
      try server.command(parts[0])
    }
    await first.fleet.purge(.tag("a"))
    // Purges of the old stream may be lost, so everything is purged.
    for machine in [first, second] {
      try await eventually { machine.applied.contains(.everything) }
      try await machine.whenSynchronised()
    }
    try await eventually { first.fleet.figures.purgesWaiting == 0 }
    await first.fleet.purge(.tag("b"))
    try await eventually { second.applied.contains(.tag("b")) }
  }

  @Test func `a machine that missed trimmed entries purges everything`() async throws {
    let first = try await machine(0)
    let second = try await machine(1)
    await second.fleet.stop()
    for tag in ["a", "b", "c"] { await first.fleet.purge(.tag(tag)) }
    try server.command("XTRIM", "pictor:purges", "MAXLEN", "1")
    let again = try await machine(1)
    #expect(again.applied.first == .everything)
  }

  @Test func `a Redis that lost its last entries begins a new epoch`() async throws {
    let first = try await machine(0)
    let second = try await machine(1)
    await first.fleet.purge(.tag("a"))
    try await eventually { second.applied == [.tag("a")] }
    // Both have applied more than the stream has: as after a power failure without a synced file.
    await first.fleet.stop()
    await second.fleet.stop()
    let files = FleetFiles(folder: folders[0].path)
    let applied = try #require(files.readPosition())
    try files.write(
      AppliedPosition(
        epoch: applied.epoch,
        position: StreamPosition(milliseconds: applied.position.milliseconds + 1, number: 0)))
    let again = try await machine(0)
    #expect(again.applied == [.everything])
    let other = try await machine(1)
    #expect(other.applied == [.everything])
  }

  @Test func `a purge that could not be applied is applied later, and the position waits for it`()
    async throws
  {
    let first = try await machine(0)
    let second = try await machine(1)
    second.failing.withLock { $0 = [.tag("a")] }
    let before = second.fleet.mark
    await first.fleet.purge(.tag("a"))
    try await eventually { second.applied == [.tag("a")] }
    await first.fleet.purge(.tag("b"))
    try await eventually { second.applied == [.tag("a"), .tag("b")] }
    try await second.whenSynchronised()
    #expect(second.fleet.mark != before)
    // Nothing is applied again after a restart.
    await second.fleet.stop()
    #expect(try await machine(1).applied == [])
  }

  @Test func `a lost entry is noticed although later ones came`() async throws {
    let first = try await machine(0)
    let second = try await machine(1)
    await first.fleet.purge(.tag("a"))
    try await eventually { second.applied == [.tag("a")] }
    await second.fleet.stop()
    // As after a crash: Redis is without the last entry, and another machine's is later.
    let files = FleetFiles(folder: folders[1].path)
    let applied = try #require(files.readPosition())
    #expect(try server.command("XDEL", "pictor:purges", "\(applied.position)") == ":1\r\n")
    await first.fleet.purge(.tag("b"))
    #expect(try await machine(1).applied == [.everything])
    // For all, since others may have missed the lost one.
    try await eventually { first.applied == [.everything] }
  }

  @Test func `an acknowledged purge that Redis lost is delivered again`() async throws {
    let first = try await machine(0)
    let second = try await machine(1)
    // Given a machine whose reader is busy, and whose purge nobody has read
    await second.fleet.purge(.tag("wait"))
    try await eventually { first.waiting.value == 1 }
    try await eventually { second.fleet.stream.history.withLock { $0.pending.isEmpty } }
    await second.fleet.stop()
    await first.fleet.purge(.tag("a"))
    #expect(first.fleet.figures.purgesPublished == 1)
    // When Redis loses it
    let newest = try server.command("XREVRANGE", "pictor:purges", "+", "-", "COUNT", "1")
    let position = try #require(
      newest.split(separator: "\r\n").first { StreamPosition(String($0)) != nil })
    #expect(try server.command("XDEL", "pictor:purges", String(position)) == ":1\r\n")
    let before = first.fleet.figures.failures
    try server.command("CLIENT", "KILL", "TYPE", "normal")
    // And has other connections before its reader continues
    try await eventually {
      first.fleet.figures.failures >= before + 2 && first.fleet.figures.isConnected
    }
    first.gate.open()
    // Then the others get it nevertheless
    try await eventually { first.fleet.stream.history.withLock { $0.pending.isEmpty } }
    #expect(first.fleet.figures.purgesPublished == 2)
    #expect(try await machine(1).applied == [.tag("a")])
  }

  @Test func `entries that were trimmed unread refuse what they may have purged`() async throws {
    let key = CacheKey(text: "https://example.com/a.jpg w=20")
    let url = try SourceURL(parsing: "https://example.com/a.jpg")
    let first = try await machine(0)
    let second = try await machine(1)
    // Given a machine that reads nothing more, and a mark of that time
    await second.fleet.purge(.tag("wait"))
    try await eventually { first.waiting.value == 1 }
    let mark = try #require(first.fleet.mark)
    let filter = CacheKeyFilter()
    #expect(first.fleet.stream.allows(key, mark: mark, filter: filter))
    // When purges are trimmed before it reads them
    await second.fleet.purge(.url(url))
    for tag in ["b", "c"] { await second.fleet.purge(.tag(tag)) }
    try server.command("XTRIM", "pictor:purges", "MAXLEN", "1")
    first.gate.open()
    // Then everything is purged, and shared entries of before are refused
    try await eventually { first.applied.contains(.everything) }
    try await first.whenSynchronised()
    #expect(!first.fleet.stream.allows(key, mark: mark, filter: filter))
    #expect(
      try first.fleet.stream.allows(
        key, mark: #require(first.fleet.mark), filter: filter))
  }

  @Test func `many missed purges are one of everything`() async throws {
    let first = try await machine(0)
    let second = try await machine(1)
    await second.fleet.stop()
    for _ in 0..<PurgeCommands.many { await first.fleet.purge(.tag("a")) }
    let again = try await machine(1)
    #expect(again.applied == [.everything])
  }

  @Test func `an entry of another version purges everything`() async throws {
    let first = try await machine(0)
    try server.command("XADD", "pictor:purges", "*", "future", "1")
    try await eventually { first.applied == [.everything] }
  }

  @Test func `the rights in the documentation suffice`() async throws {
    let rights =
      "on >secret ~pictor:* -@all +auth +select +ping +eval +get +set +del +xlen +xadd +xrange +xrevrange +xread +config|get"
    try server.command(
      ["ACL", "SETUSER", "pictor"] + rights.split(separator: " ").map(String.init))
    let port = try server.listen()
    let address = try #require(RedisAddress("redis://pictor:secret@127.0.0.1:\(port)/2"))
    var settings = FleetSettings()
    settings.timeout = .seconds(10)
    let fleet = try Fleet(
      FleetConfiguration(address: address, settings: settings, folder: nil),
      coding: StoredVariantCoding(memory: .unlimited), sourceCoding: StoredSourceCoding(),
      log: .silent)
    fleet.start { _ throws(ImageError) in }
    try await eventually { fleet.isSynchronised && fleet.client.isReady() }
    await fleet.purge(.tag("a"))
    #expect(fleet.figures.purgesPublished == 1 && fleet.figures.errors == 0)
    await fleet.stop()
  }

  @Test func `a machine without a folder has no position`() async throws {
    let first = try await machine(0)
    await first.fleet.purge(.tag("a"))
    let other = try Machine(server, in: nil)
    try await other.whenSynchronised()
    #expect(other.applied == [.tag("a")])
  }

  @Test func `a frozen Redis holds a purge up for its time-out only, and gets it afterwards`()
    async throws
  {
    let second = try await machine(1)
    var settings = FleetSettings()
    settings.timeout = .milliseconds(50)
    settings.retryInterval = .milliseconds(20)
    let address = try #require(RedisAddress(server.address))
    let fleet = try Fleet(
      FleetConfiguration(address: address, settings: settings, folder: folders[0].path),
      coding: StoredVariantCoding(memory: .unlimited), sourceCoding: StoredSourceCoding(),
      log: .silent)
    fleet.start { _ throws(ImageError) in }
    try await eventually { fleet.isSynchronised }
    try await eventually("the policy is known") { try server.calls(of: "config|get") == 2 }
    server.freeze()
    let before = fleet.figures.commands
    for number in 0..<20 { await fleet.purge(.tag("\(number)")) }
    // The breaker answers all but the first.
    #expect(fleet.figures.commands - before == 1 && fleet.figures.timedOut == 1)
    #expect(fleet.figures.purgesWaiting == 20)
    server.thaw()
    try await eventually { Set(second.applied).count == 20 }
    await fleet.stop()
  }
}

extension Fleet {
  /// Publishes a purge as the manager does.
  fileprivate func purge(_ scope: PurgeScope) async {
    await publish(scope, number: beginPurge(scope))
  }
}
