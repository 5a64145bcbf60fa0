// FleetPurgeTests: real programs that share purges through a real Redis.

import FoundationEssentials
import Telemetry
import TestSupport
import Testing

@Suite(.onOwnThreads) struct FleetPurgeTests {
  private let server: RedisServer
  private let origin: Origin
  private let folders: [TemporaryFolder]

  init() throws {
    server = try RedisServer(["--appendonly", "yes"])
    origin = try Origin()
    folders = try (0..<3).map { _ in try TemporaryFolder() }
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 60, height: 40))
  }

  private func start(_ number: Int) throws -> PictorProcess {
    let pictor = try PictorProcess(
      in: folders[number],
      PictorProcess.operated + [
        "--fleet.redis", server.address, "--fleet.timeout", "10s", "--fleet.retry_interval", "20ms",
        "--fleet.variant_limit", "0B",
      ])
    try blockUntil("the machine has read the stream") {
      try figures(pictor).positionAgeSeconds >= 0
    }
    return pictor
  }

  private func figures(_ pictor: PictorProcess) throws -> FleetFigures {
    let answer = try pictor.connect().get("/stats")
    return try #require(try JSONDecoder().decode(Stats.self, from: Data(answer.body)).fleet)
  }

  private func cacheStatus(_ pictor: PictorProcess) throws -> String {
    try pictor.connect().get("/image?url=\(encoded(origin.url("/a.jpg")))&w=20")["Cache-Status"]
      ?? ""
  }

  private func purge(_ pictor: PictorProcess) throws {
    let answer = try pictor.operate(
      "DELETE", target: "/admin/cache?url=\(encoded(origin.url("/a.jpg")))")
    #expect(answer.status == 200)
  }

  @Test func `a purge on one machine holds on all, also on one that was stopped`() throws {
    let first = try start(0)
    let second = try start(1)
    var third: PictorProcess? = try start(2)
    for pictor in [first, second] {
      #expect(try cacheStatus(pictor).contains("pictor;"))
      #expect(try cacheStatus(pictor).contains("hit"))
    }
    if let third { #expect(try cacheStatus(third).contains("pictor;")) }
    #expect(try third?.end() == 0)
    third = nil
    try purge(first)
    try blockUntil("the other machine has purged") { try figures(second).purgesApplied == 1 }
    #expect(try cacheStatus(second).contains("fwd=uri-miss"))
    let again = try start(2)
    #expect(try cacheStatus(again).contains("fwd=uri-miss"))
    #expect(try figures(again).purgesApplied == 1)
  }

  @Test func `a policy that refuses purges is a warning, and another is none`() throws {
    let full = try RedisServer(["--maxmemory-policy", "noeviction"])
    let pictor = try PictorProcess(in: folders[0], ["--fleet.redis", full.address])
    try blockUntil("the warning") { pictor.log.contains("maxmemory-policy") }
    let other = try start(1)
    try blockUntil { try server.calls(of: "config|get") > 0 }
    #expect(try other.end() == 0)
    #expect(!other.log.contains("maxmemory-policy"))
  }

  @Test func `an address that cannot be used is a mistake of the configuration`() throws {
    let pictor = try PictorProcess(
      in: folders[0], ["--check-config", "--fleet.redis", "env:FLEET_TEST_REDIS"],
      environment: ["FLEET_TEST_REDIS": "http://a:hunter2@h"], isServer: false)
    #expect(try pictor.end(0) == 1)
    #expect(pictor.log.contains("fleet.redis") && !pictor.log.contains("hunter2"))
  }

  @Test func `images are served while Redis is away, and the purge arrives afterwards`() throws {
    let first = try start(0)
    let second = try start(1)
    #expect(try cacheStatus(second).contains("fwd=uri-miss"))
    server.kill()
    try blockUntil { try !figures(first).isConnected }
    #expect(try cacheStatus(first).contains("fwd=uri-miss"))
    #expect(try cacheStatus(second).contains("hit"))
    try purge(first)
    #expect(try figures(first).purgesWaiting == 1)
    try server.start()
    try blockUntil { try figures(second).purgesApplied >= 1 }
    #expect(try cacheStatus(second).contains("fwd=uri-miss"))
  }
}
