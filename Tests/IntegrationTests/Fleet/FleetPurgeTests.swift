// FleetPurgeTests: real programs that share purges through a real Redis.

import TestSupport
import Testing

@Suite(.onOwnThreads) struct FleetPurgeTests {
  private let machines: FleetMachines

  init() throws { machines = try FleetMachines() }

  private func start(_ number: Int) throws -> PictorProcess {
    try machines.start(number, ["--fleet.variant_limit", "0B"])
  }

  @Test func `a purge on one machine holds on all, also on one that was stopped`() throws {
    let first = try start(0)
    let second = try start(1)
    var third: PictorProcess? = try start(2)
    for pictor in [first, second] {
      #expect(try machines.cacheStatus(pictor).contains("pictor;"))
      #expect(try machines.cacheStatus(pictor).contains("hit"))
    }
    if let third { #expect(try machines.cacheStatus(third).contains("pictor;")) }
    #expect(try third?.end() == 0)
    third = nil
    try machines.purge(first)
    try blockUntil("the other machine has purged") {
      try machines.figures(second).purgesApplied == 1
    }
    #expect(try machines.cacheStatus(second).contains("fwd=uri-miss"))
    let again = try start(2)
    #expect(try machines.cacheStatus(again).contains("fwd=uri-miss"))
    #expect(try machines.figures(again).purgesApplied == 1)
  }

  @Test func `a policy that refuses purges is a warning, and another is none`() throws {
    let full = try RedisServer(["--maxmemory-policy", "noeviction"])
    let pictor = try PictorProcess(in: machines.folder(0), ["--fleet.redis", full.address])
    try blockUntil("the warning") { pictor.log.contains("maxmemory-policy") }
    let other = try start(1)
    try blockUntil { try machines.server.calls(of: "config|get") > 0 }
    #expect(try other.end() == 0)
    #expect(!other.log.contains("maxmemory-policy"))
  }

  @Test func `an address that cannot be used is a mistake of the configuration`() throws {
    let pictor = try PictorProcess(
      in: machines.folder(0), ["--check-config", "--fleet.redis", "env:FLEET_TEST_REDIS"],
      environment: ["FLEET_TEST_REDIS": "http://a:hunter2@h"], isServer: false)
    #expect(try pictor.end(0) == 1)
    #expect(pictor.log.contains("fleet.redis") && !pictor.log.contains("hunter2"))
  }

  @Test func `images are served while Redis is away, and the purge arrives afterwards`() throws {
    let first = try start(0)
    let second = try start(1)
    #expect(try machines.cacheStatus(second).contains("fwd=uri-miss"))
    machines.server.kill()
    try blockUntil { try machines.figures(first).connected == false }
    #expect(try machines.cacheStatus(first).contains("fwd=uri-miss"))
    #expect(try machines.cacheStatus(second).contains("hit"))
    try machines.purge(first)
    #expect(try machines.figures(first).purgesWaiting == 1)
    try machines.server.start()
    try blockUntil { try machines.figures(second).purgesApplied >= 1 }
    #expect(try machines.cacheStatus(second).contains("fwd=uri-miss"))
  }
}
