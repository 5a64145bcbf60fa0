// FleetTests: machines that share purges through a real Redis, which fails in every way.

import Caching
import Core
import TestSupport
import Testing

@testable import Sharing

@Suite(.onOwnThreads) final class FleetTests: PurgingMachines {
  @Test func `a purge is applied by all others, and not again by its own machine`() async throws {
    let machines = [try await machine(0), try await machine(1), try await machine(2)]
    try await machines[0].fleet.purge(.tag("a"))
    try await machines[1].fleet.purge(.tag("b"))
    try await eventually { machines[2].applied == [.tag("a"), .tag("b")] }
    try await eventually {
      machines[0].applied == [.tag("b")] && machines[1].applied == [.tag("a")]
    }
    #expect(machines[0].fleet.figures.purgesPublished == 1)
    #expect(machines[2].fleet.figures.purgesApplied == 2)
  }

  @Test func `a machine that was stopped applies what it missed`() async throws {
    let first = try await machine(0)
    var second: PurgingMachine? = try await machine(1)
    await second?.fleet.stop()
    second = nil
    try await first.fleet.purge(.tag("a"))
    try await first.fleet.purge(.tag("b"))
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
    var first: PurgingMachine? = try await machine(0)
    server.kill()
    try await first?.fleet.purge(.tag("a"))
    try await first?.fleet.purge(.tag("b"))
    #expect(first?.fleet.figures.purgesWaiting.whole == 2)
    await first?.fleet.stop()
    first = nil
    let again = try PurgingMachine(server, in: folders[0])
    #expect(again.fleet.figures.purgesWaiting == 2)
    // The crash may have come before they were durable.
    try await eventually { again.applied == [.tag("a"), .tag("b")] }
    try await again.fleet.purge(.tag("c"))
    try server.start()
    try await eventually { again.fleet.figures.purgesWaiting == 0 }
    try await eventually { second.applied.suffix(3) == [.tag("a"), .tag("b"), .tag("c")] }
    // With its data, Redis has lost nothing.
    #expect(second.applied.count == 3)
  }

  @Test func `many missed purges are one of everything`() async throws {
    let first = try await machine(0)
    let second = try await machine(1)
    await second.fleet.stop()
    for _ in 0..<PurgeCommands.many { try await first.fleet.purge(.tag("a")) }
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
      coding: StoredVariantCoding(memory: .unlimited), log: .silent)
    fleet.start { _ throws(ImageError) in }
    try await eventually { fleet.stream.isSynchronised && fleet.client.isReady }
    try await fleet.purge(.tag("a"))
    #expect(fleet.figures.purgesPublished == 1 && fleet.figures.errors == 0)
    await fleet.stop()
  }

  @Test func `a machine without a folder has no position`() async throws {
    let first = try await machine(0)
    try await first.fleet.purge(.tag("a"))
    let other = try PurgingMachine(server, in: nil)
    try await other.whenSynchronised()
    #expect(other.applied == [.tag("a")])
  }

  @Test func `a frozen Redis holds three purges up for their time-outs, and gets all afterwards`()
    async throws
  {
    let second = try await machine(1)
    var settings = FleetSettings()
    settings.timeout = .seconds(1)
    settings.retryInterval = .milliseconds(20)
    let address = try #require(RedisAddress(server.address))
    let fleet = try Fleet(
      FleetConfiguration(address: address, settings: settings, folder: folders[0].path),
      coding: StoredVariantCoding(memory: .unlimited), log: .silent)
    fleet.start { _ throws(ImageError) in }
    try await eventually { fleet.stream.isSynchronised }
    try await eventually("the policy is known") { try server.calls(of: "config|get") >= 2 }
    server.freeze()
    let before = fleet.figures
    for number in 0..<20 { try await fleet.purge(.tag("\(number)")) }
    // The breaker answers all but the first three.
    let after = fleet.figures
    #expect(after.commands - before.commands == 3 && after.timedOut - before.timedOut == 3)
    #expect(fleet.figures.purgesWaiting == 20)
    server.thaw()
    try await eventually { Set(second.applied).count == 20 }
    await fleet.stop()
  }
}
