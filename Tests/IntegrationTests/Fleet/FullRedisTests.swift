// FullRedisTests: real programs beside a real Redis whose memory is full.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) struct FullRedisTests {
  private let machines: FleetMachines

  init() throws { machines = try FleetMachines() }

  @Test func `a full Redis loses no request and no purge, and is used again when it has room`()
    throws
  {
    // Given two machines that share a variant
    let first = try machines.start(0)
    let second = try machines.start(1)
    #expect(try machines.cacheStatus(first).contains("fwd=uri-miss"))
    try blockUntil("the variant is written") { try machines.figures(first).stores == 1 }
    #expect(try machines.cacheStatus(second).contains("hit; detail=shared"))
    // When Redis evicts all that may be evicted, and refuses to write
    try machines.server.command("CONFIG", "SET", "maxmemory", "1")
    #expect(try machines.server.command("SET", "a", "b").hasPrefix("-OOM"))
    // Then images are served, and failures and purges are answered
    for width in 21..<26 { #expect(try machines.get(first, width: width).status == 200) }
    let missing = try first.connect().get(
      "/image?url=\(encoded(machines.origin.url("/missing.jpg")))&w=20")
    #expect(missing.status == 404)
    try machines.purge(first)
    #expect(try machines.cacheStatus(first).contains("fwd=uri-miss"))
    let figures = try machines.figures(first)
    #expect(figures.purgesWaiting == 1 && figures.errors > 0)
    #expect(figures.connected == true && figures.failures == 0)
    #expect(try machines.cacheStatus(second).contains("detail=memory"))
    // When it has room again
    try machines.server.command("CONFIG", "SET", "maxmemory", "0")
    // Then the purge arrives, and variants are shared
    try blockUntil("the purge has arrived") {
      try machines.figures(second).purgesApplied == 1 && machines.figures(first).purgesWaiting == 0
    }
    try machines.waitUntilRead(by: first)
    let stores = try machines.figures(first).stores
    #expect(
      try machines.get(first, width: 30)["Cache-Status"]?.contains("hit; detail=source") == true)
    try blockUntil("a variant is written") { try machines.figures(first).stores == stores + 1 }
    #expect(
      try machines.get(second, width: 30)["Cache-Status"]?.contains("hit; detail=shared") == true)
  }

  @Test func `a machine alone has no thread, no file and no figure of a fleet`() throws {
    let folder = machines.folder(0)
    let pictor = try PictorProcess(in: folder, PictorProcess.operated)
    #expect(try machines.get(pictor).status == 200)
    try machines.purge(pictor)
    #expect(try machines.stats(pictor).fleet.isAbsent)
    // Of a fleet, both are there: the same look at one that shares by Redis and a bucket.
    let bucket = try S3Server()
    let other = try machines.start(
      1,
      [
        "--fleet.s3.bucket", "shared", "--fleet.s3.endpoint", bucket.endpoint,
      ])
    #expect(try machines.get(other).status == 200)
    try machines.purge(other)
    let shared = ["pictor-redis", "pictor-s3"]
    #expect(pictor.threadNames.isDisjoint(with: shared))
    #expect(other.threadNames.isSuperset(of: shared))
    func fleetFiles(_ folder: TemporaryFolder) -> [String] {
      TemporaryFolder.files(below: folder.path).filter { $0.contains("/fleet-") }
    }
    #expect(fleetFiles(folder) == [] && fleetFiles(machines.folder(1)) != [])
  }
}
