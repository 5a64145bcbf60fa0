// DiskPurgeModelTests: random stores, purges, clears and restarts, compared with a naive model.

import Core
import TestSupport
import Testing

@testable import Caching

@Suite(.onOwnThreads) final class DiskPurgeModelTests: DiskFolderTests {
  /// One run of the tier with its own list of purges.
  final class Run {
    let purges = Purges(filter: PurgesTests.filter)
    let tier: DiskTier

    init(_ folder: TemporaryFolder, clock: ManualClock) throws {
      tier = try DiskTier(Sample.configuration(folder), purges: purges, log: .silent) { clock.now }
    }
  }

  static func url(_ random: inout SeededGenerator) -> String {
    let host = ["shop.example", "a.other.example", "other.example"].randomElement(using: &random)
    let path = ["a/", "a/b/", "b"].randomElement(using: &random)
    return "https://\(host ?? "")/\(path ?? "")\(Int.random(in: 0..<4, using: &random))"
  }

  static func key(_ random: inout SeededGenerator) -> CacheKey {
    let variation = Int.random(in: 0..<4, using: &random) == 0 ? "#ab" : ""
    let transform = ["", " w=1", " w=2"].randomElement(using: &random) ?? ""
    return CacheKey(text: url(&random) + variation + transform)
  }

  static func scope(_ random: inout SeededGenerator) throws -> PurgeScope {
    switch Int.random(in: 0..<20, using: &random) {
    case 0..<10: .url(try SourceURL(parsing: url(&random)))
    case 10..<14:
      .prefix(
        try SourceURL(parsing: String(url(&random).dropLast(Int.random(in: 1...3, using: &random))))
      )
    case 14..<17:
      .host(
        try #require(
          ["shop.example", "*.other.example", "none.example"].randomElement(using: &random)
            .flatMap { HostPattern($0) }))
    case 17..<19: .tag(["shop", "none"].randomElement(using: &random) ?? "")
    default: .everything
    }
  }

  func find(_ key: CacheKey, in tier: DiskTier) async -> [UInt8]? {
    key.isSource ? await tier.source(for: key)?.bytes : await tier.variant(for: key)?.bytes
  }

  @Test(arguments: [21, 22])
  func `random operations return exactly the entries stored after their last purge`(
    seed: Int
  ) async throws {
    var random = SeededGenerator(seed: UInt64(seed))
    var reference: [CacheKey: [UInt8]] = [:]
    var run = try Run(folder, clock: clock)
    var found = 0
    var purged = 0
    for step in 0..<1_000 {
      let key = Self.key(&random)
      switch Int.random(in: 0..<100, using: &random) {
      case 0..<45:
        let bytes = Sample.bytes(Int.random(in: 1..<3_000, using: &random), seed: step)
        // Sometimes from a load that began before the last purge
        let generation = run.purges.generation - (step % 10 == 0 ? 1 : 0)
        if !run.purges.covers(key, generation: generation) { reference[key] = bytes }
        if key.isSource {
          run.tier.store(try Sample.source(key.text, generation: generation, bytes: bytes))
        } else {
          run.tier.store(Sample.variant(key.text, generation: generation, bytes: bytes))
        }
      case 45..<50:
        let scope = try Self.scope(&random)
        let before = reference.count
        let isQuiet = run.tier.isIndexed && run.tier.pendingBytes == 0
        let isPending = run.tier.figures.purgesPending > 0
        reference = reference.filter { !scope.matches($0.key, filter: PurgesTests.filter) }
        let purgedBefore = run.tier.figures.purged
        var count = try await run.tier.purge(run.purges.add(scope))
        // Entries that a sweep finds before the purge is carried out are counted by the sweep.
        if let reported = count {
          let all = run.tier.figures.purged - purgedBefore
          if scope != .everything { #expect(reported <= all, "\(scope)") }
          count = all
        }
        // A dropped pending write may be gone before it is counted. Entries of an earlier purge
        // that are still on disk are counted too.
        if let count, isQuiet {
          let difference = count - (before - reference.count)
          #expect(isPending ? difference >= 0 : difference == 0, "\(scope) \(difference)")
        }
        purged += before - reference.count
      case 50:
        let count = try await run.tier.clear()
        // Before the index is complete, entries that a sweep will find are counted too.
        #expect(count >= reference.count)
        reference = [:]
        // A clear that continues in a later run may remove entries stored in its second.
        clock.advance(by: 1)
      case 51:
        await run.tier.removeVariants(of: key.source)
        reference = reference.filter { !($0.key.source == key.source && !$0.key.isSource) }
      case 52:
        let isClearing = run.tier.parts?.sweeper.isClearing ?? false
        #expect(await run.tier.shutDown(within: .seconds(10)))
        run = try Run(folder, clock: clock)
        // Entries stored since an unfinished clear are found when the index is complete.
        if isClearing { #expect(await run.tier.ready()) }
      default:
        let bytes = await find(key, in: run.tier)
        #expect(bytes == reference[key])
        #expect(await run.tier.look(for: key)?.bytes == reference[key]?.count)
        if bytes != nil { found += 1 }
      }
    }
    #expect(found > 30 && purged > 30)
    #expect(await run.tier.quiet())
    try await eventually { run.tier.figures.purgesPending == 0 }
    for (key, bytes) in reference { #expect(await find(key, in: run.tier) == bytes) }
    #expect(run.tier.figures.entries == reference.count)
    #expect(run.tier.figures.damaged == 0)
    #expect(await run.tier.shutDown(within: .seconds(10)))
    #expect(run.tier.figures.bytes == TemporaryFolder.diskUsage(of: folder.path + "/cache"))
  }
}
