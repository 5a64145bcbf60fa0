// DiskShareTests: sources and variants each have their share of the disk, in bytes and in files.

import Core
import TestSupport
import Testing

@testable import Caching

@Suite(.onOwnThreads) final class DiskShareTests: DiskFolderTests {
  func files(_ kind: EntryKind) -> Int {
    TemporaryFolder.files(below: cache + "/" + kind.folderName).count
  }

  @Test(arguments: [EntryKind.variant, .source])
  func `one kind of entry never evicts the other`(small: EntryKind) async throws {
    // Given a few entries of one kind, used longest ago.
    let limit = 4 << 20
    let tier = try open(limit: limit)
    func store(_ number: Int, count: Int, as kind: EntryKind) throws {
      if kind == .variant {
        tier.store(Sample.variant(number, bytes: Sample.bytes(count)))
      } else {
        tier.store(try Sample.source(number, bytes: Sample.bytes(count)))
      }
    }
    for number in 0..<10 { try store(number, count: 20_000, as: small) }
    #expect(await tier.quiet())
    clock.advance(by: 1_000)
    // When far more entries of the other kind are stored than fit.
    for number in 0..<200 {
      try store(number, count: 60_000, as: small == .variant ? .source : .variant)
      #expect(await tier.quiet())
      #expect(TemporaryFolder.diskUsage(of: cache) <= limit)
    }
    // Then each kind stays within its share.
    await tier.clean()
    #expect(tier.figures.evictions > 50)
    #expect(files(small) == 10)
    let figures = tier.figures
    let shares: [(Figure, EntryKind)] = [(figures.variants, .variant), (figures.sources, .source)]
    for (share, kind) in shares {
      #expect(share.entries == files(kind))
      #expect(share.bytes <= share.limit)
      #expect(share.countLimit == 500_000)
    }
    #expect(figures.entries == files(.variant) + files(.source))
    #expect(figures.bytes == TemporaryFolder.diskUsage(of: cache))
  }

  @Test
  func `the number of files never exceeds the count limit, and the least recently used go first`()
    async throws
  {
    let tier = try open(limit: 64 << 20) {
      $0.countLimit = 100
      $0.sourceShare = 0.2
    }
    for number in 0..<300 {
      tier.store(Sample.variant(number, bytes: Sample.bytes(100)))
      if number < 90 { tier.store(try Sample.source(number, bytes: Sample.bytes(100))) }
      #expect(await tier.quiet())
      #expect(files(.variant) <= 80)
      #expect(files(.source) <= 20)
      // The tier would clean in time by itself, but this test is faster and would leave gaps.
      if number % 3 == 0 { await tier.clean() }
      clock.advance(by: 1)
    }
    await tier.clean()
    #expect(tier.figures.variants.entries == files(.variant))
    #expect(tier.figures.variants.countLimit == 80)
    #expect(tier.figures.sources.countLimit == 20)
    // The most recent entries are kept, without a gap.
    let kept = files(.variant)
    #expect(kept >= 40)
    for number in 0..<300 {
      let isKept = await tier.variant(for: Sample.variantKey(number)) != nil
      #expect(isKept == (number >= 300 - kept))
    }
  }

  @Test func `a clean reduces a full count to the clean fraction and reports what it removed`()
    async throws
  {
    let first = try open(limit: 64 << 20)
    for number in 0..<50 {
      first.store(Sample.variant(number, bytes: Sample.bytes(100)))
      clock.advance(by: 1_000)
    }
    for number in 0..<8 { first.store(try Sample.source(number, bytes: Sample.bytes(100))) }
    await first.shutDown(within: .seconds(10))
    // Given a limit that is lower by 10 files of 40.
    let second = try open(limit: 64 << 20) {
      $0.countLimit = 80
      $0.cleanFraction = 0.25
    }
    try await eventually { second.isIndexed && second.figures.evictions == 40 }
    #expect(second.figures.variants.entries == 10)
    #expect(second.figures.sources.entries == 8)
    let report = await second.clean()
    #expect(report == CleanReport())
  }

  @Test func `a count limit of 0 means no limit`() async throws {
    let tier = try open(limit: 64 << 20) { $0.countLimit = 0 }
    for number in 0..<50 { tier.store(Sample.variant(number, bytes: Sample.bytes(100))) }
    #expect(await tier.quiet())
    #expect(tier.figures.entries == 50)
    #expect(tier.figures.variants.countLimit == 0)
  }

  @Test(arguments: [
    (1, 0.5, 0, 1), (1, 0.99, 0, 1), (2, 0.5, 1, 1), (2, 0.01, 1, 1), (2, 0.99, 1, 1),
    (3, 0.01, 1, 2), (3, 0.3, 1, 2), (3, 0.5, 1, 2), (3, 0.99, 2, 1), (200, 0.001, 1, 199),
  ])
  func `each share has a file where there are two`(
    limit: Int, share: Double, sources: Int, variants: Int
  ) {
    var configuration = DiskTierConfiguration(path: nil)
    configuration.countLimit = limit
    configuration.sourceShare = share
    let space = DiskSpace(configuration, base: 0)
    #expect(space[.source].limit.files == sources)
    #expect(space[.variant].limit.files == variants)
  }

  @Test(arguments: [1, 2, 15])
  func `a write at the limit of few files takes the place of the oldest, and is no failure`(
    limit: Int
  ) async throws {
    // Given: no clean but those that writes ask for
    let tier = try open {
      $0.countLimit = limit
      $0.sourceShare = 0.5
    }
    for number in 0..<40 {
      // When
      await tier.keep(Sample.variant(number, bytes: Sample.bytes(100, seed: number)))
      // Then
      let found = await tier.variant(for: Sample.variantKey(number))
      #expect(found?.bytes == Sample.bytes(100, seed: number))
      #expect(files(.variant) + files(.source) <= limit)
    }
    #expect(tier.figures.failures == 0 && tier.figures.stores == 40)
  }

  @Test(arguments: [(1, 0), (8_192, 0), (40_000, 0), (70_000, 0), (64 << 20, 1), (64 << 20, 2)])
  func `a tier too small for one share stores what fits`(
    limit: Int, countLimit: Int
  ) async throws {
    let tier = try open(limit: limit) { $0.countLimit = countLimit }
    #expect(await tier.ready())
    let empty = TemporaryFolder.diskUsage(of: cache)
    for number in 0..<20 {
      tier.store(Sample.variant(number, bytes: Sample.bytes(100, seed: number)))
      tier.store(try Sample.source(number, bytes: Sample.bytes(100, seed: number)))
      #expect(await tier.quiet())
      if let found = await tier.variant(for: Sample.variantKey(number)) {
        #expect(found.bytes == Sample.bytes(100, seed: number))
      }
      #expect(TemporaryFolder.diskUsage(of: cache) <= max(limit, empty))
      if countLimit > 0 { #expect(files(.variant) + files(.source) <= countLimit) }
      await tier.clean()
    }
    #expect((tier.figures.stores > 0) == (limit >= 70_000))
    #expect((tier.figures.failures > 0) == (countLimit != 2))
    #expect(tier.figures.bytes == TemporaryFolder.diskUsage(of: cache))
  }

  @Test func `the shares together never exceed the limit`() {
    for limit in [0, 1, 5_000, 16_384, 100_001, 10 << 30] {
      for share in [0.01, 0.3, 0.5, 0.99] {
        var configuration = DiskTierConfiguration(path: nil)
        configuration.limit = limit
        configuration.sourceShare = share
        configuration.countLimit = limit % 1_000
        let space = DiskSpace(configuration, base: 16_384)
        let variants = space[.variant].limit
        let sources = space[.source].limit
        #expect(variants.bytes + sources.bytes + 16_384 == max(limit, 16_384))
        if configuration.countLimit > 0 {
          #expect(variants.files + sources.files == configuration.countLimit)
        } else {
          #expect((variants.files, sources.files) == (.max, .max))
        }
      }
    }
  }

  @Test func `concurrent reservations never exceed the share`() async {
    let share = DiskShare(limit: DiskUse(bytes: 100_000, files: 50))
    await withTaskGroup(of: Int.self) { group in
      for task in 0..<8 {
        group.addTask {
          var random = SeededGenerator(seed: UInt64(task))
          var made = 0
          for _ in 0..<2_000 {
            let amount = Int.random(in: 1...5_000, using: &random)
            guard share.reserve(amount) == nil else { continue }
            made += 1
            // The value may include another thread's reservation for a moment, but never exceeds
            // the limit.
            let use = share.use
            #expect(use.bytes <= 100_000 && use.files <= 50)
            share.add(bytes: -amount, files: -1)
          }
          return made
        }
      }
      for await made in group { #expect(made > 0) }
    }
    #expect(share.use == DiskUse(bytes: 0, files: 0))
    #expect(share.reserve(100_001) == .tooLarge)
  }
}
