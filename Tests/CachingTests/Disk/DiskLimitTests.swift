// DiskLimitTests: the disk tier's size limit and its cleans.

import Core
import Glibc
import TestSupport
import Testing

@testable import Caching

@Suite(.onOwnThreads) final class DiskLimitTests: DiskFolderTests {
  @Test func `disk usage never exceeds the limit and equals the reported size`() async throws {
    let limit = 2 << 20
    let tier = try open(limit: limit)
    var random = SeededGenerator(seed: 1)
    for number in 0..<600 {
      tier.store(
        Sample.variant(number, bytes: Sample.bytes(Int.random(in: 0..<40_000, using: &random))))
      if number % 10 == 0 {
        _ = await tier.quiet()
        #expect(TemporaryFolder.diskUsage(of: cache) <= limit)
      }
      if number % 50 == 0 {
        clock.advance(by: 1)
        await tier.clean()
      }
    }
    #expect(await tier.quiet())
    await tier.clean()
    #expect(tier.figures.evictions > 100)
    #expect(tier.figures.entries > 10)
    #expect(tier.figures.bytes == TemporaryFolder.diskUsage(of: cache))
    await tier.shutDown(within: .seconds(10))

    // The next process counts the same.
    let second = try open(limit: limit)
    #expect(await second.ready())
    #expect(second.figures.bytes == TemporaryFolder.diskUsage(of: cache))
    #expect(second.figures.entries == tier.figures.entries)
  }

  @Test func `the purge journal counts against the limit, and a clean makes room for it`() throws {
    // Given a full tier and a purge journal that grows
    var configuration = Sample.configuration(folder, limit: 1 << 20)
    configuration.sourceShare = 0
    let store = DiskStore(
      folder: try DiskFolder(path: cache), configuration: configuration, log: .silent
    ) { [clock] in clock.now }
    let isShort = Lock(false)
    store.onShortage.withLock { $0 = { isShort.withLock { $0 = true } } }
    store.scan { false }
    func fill() {
      for number in 0..<60 {
        store.put(.variant(Sample.variant(number, bytes: Sample.bytes(20_000))))
        #expect(TemporaryFolder.diskUsage(of: cache) <= configuration.limit)
      }
    }
    fill()
    isShort.withLock { $0 = false }
    var notes = PurgeJournal()
    notes.purges = (1...8_000).map { Purge(number: $0, scope: .tag("the tag with number \($0)")) }
    try store.writeJournal(notes)
    // Then a clean is requested and makes room, and later stores respect the journal's size.
    #expect(isShort.withLock { $0 })
    _ = store.clean(configuration) { false }
    #expect(TemporaryFolder.diskUsage(of: cache) <= configuration.limit)
    fill()
    #expect(store.space.bytes == TemporaryFolder.diskUsage(of: cache))
    // When the journal shrinks, its room is free again.
    try store.writeJournal(PurgeJournal())
    fill()
    #expect(store.space.bytes == TemporaryFolder.diskUsage(of: cache))
  }

  @Test func `a clean whose files cannot be unlinked leaves the other entries`() throws {
    // Given a full tier, and directories in place of the oldest files, which unlink cannot remove
    var configuration = Sample.configuration(folder, limit: 1 << 20)
    configuration.sourceShare = 0
    let store = DiskStore(
      folder: try DiskFolder(path: cache), configuration: configuration, log: .silent
    ) { [clock] in clock.now }
    store.scan { false }
    for number in 0..<60 {
      clock.advance(by: 1)
      store.put(.variant(Sample.variant(number, bytes: Sample.bytes(20_000))))
    }
    func isPresent(_ number: Int) -> Bool {
      let digest = EntryDigest(of: Sample.variantKey(number))
      return if case .present = store.index.lookUp(digest) { true } else { false }
    }
    let stored = (0..<60).filter(isPresent)
    #expect(stored.count > 30)
    for number in stored.prefix(20) {
      let path = store.folder.file(.variant, of: EntryDigest(of: Sample.variantKey(number)))
      unlink(path)
      mkdir(path, 0o700)
    }
    // When
    _ = store.clean(configuration) { false }
    // Then
    #expect(stored.prefix(20).contains { !isPresent($0) })
    #expect(stored.suffix(15).allSatisfy(isPresent))
  }

  @Test func `a clean below the limit removes only expired entries`()
    async throws
  {
    let tier = try open(limit: 64 << 20) { $0.maximumAge = 100 }
    for number in 0..<10 { tier.store(Sample.variant(number, bytes: Sample.bytes(100))) }
    #expect(await tier.quiet())
    clock.advance(by: 60)
    for number in 10..<20 { tier.store(Sample.variant(number, bytes: Sample.bytes(100))) }
    #expect(await tier.quiet())
    clock.advance(by: 41)
    await tier.clean()
    #expect(tier.figures.expirations == 10)
    #expect(tier.figures.evictions == 0)
    for number in 0..<20 {
      #expect((await tier.variant(for: Sample.variantKey(number)) != nil) == (number >= 10))
    }
  }

  @Test func `a clean runs at each interval`() async throws {
    let tier = try open(limit: 64 << 20) {
      $0.maximumAge = 100
      $0.cleanInterval = .milliseconds(5)
    }
    for number in 0..<10 { tier.store(Sample.variant(number, bytes: Sample.bytes(100))) }
    #expect(await tier.quiet())
    clock.advance(by: 101)
    try await eventually { tier.figures.expirations == 10 }
    #expect(tier.figures.bytes == TemporaryFolder.diskUsage(of: cache))
  }

  @Test func `a clean runs when there is no room`() async throws {
    let tier = try open(limit: 1 << 20)
    for number in 0..<20 { tier.store(Sample.variant(number, bytes: Sample.bytes(60_000))) }
    #expect(await tier.quiet())
    try await eventually { tier.figures.evictions > 0 }
  }

  @Test func `a negative maximum age means never`() async throws {
    let tier = try open(limit: 64 << 20) { $0.maximumAge = -1 }
    await tier.keep(Sample.variant(1, bytes: Sample.bytes(100)))
    clock.advance(by: 1_000_000_000)
    await tier.clean()
    #expect(tier.figures.entries == 1)
  }

  @Test func `a clean halves a full tier, least recently used entries first, across a restart`()
    async throws
  {
    // Given fifty entries. The first ten were used last, over an hour ago.
    let first = try open(limit: 64 << 20)
    for number in 0..<50 {
      await first.keep(Sample.variant(number, bytes: Sample.bytes(60_000)))
      clock.advance(by: 10)
    }
    clock.advance(by: 3_600)
    for number in 0..<10 { #expect(await first.variant(for: Sample.variantKey(number)) != nil) }
    await first.shutDown(within: .seconds(10))

    // When a process with a lower limit starts.
    let limit = 4 << 20
    let second = try open(limit: limit)
    try await eventually { second.isIndexed && second.figures.bytes <= limit / 4 }
    // The plan does not know that folders become empty, so wait for the end of the first clean.
    await second.clean()

    // Then the least recently used entries are gone.
    #expect(second.figures.bytes == TemporaryFolder.diskUsage(of: cache))
    let kept = second.figures.entries
    #expect(kept > 11)
    for number in 0..<50 {
      let isKept = await second.variant(for: Sample.variantKey(number)) != nil
      #expect(isKept == (number < 10 || number >= 50 - (kept - 10)))
    }
  }

  @Test(arguments: [(0.5, (64 << 20) / 16), (0.02, 300_000)])
  func `an entry may take a sixteenth of the tier and a quarter of its share`(
    share: Double, maximum: Int
  ) async throws {
    let tier = try open(limit: 64 << 20) { $0.sourceShare = share }
    for number in 0..<3 { tier.store(try Sample.source(number, bytes: Sample.bytes(100))) }
    #expect(tier.store(try Sample.source(3, bytes: Sample.bytes(maximum))))
    #expect(await tier.quiet())
    #expect(tier.figures.failures == 0 && tier.figures.sources.entries == 4)
    // What is larger is not kept, and neither is what was there before it; all others are.
    let larger = Sample.bytes(share == 0.5 ? maximum + 1 : 340_000)
    #expect(!tier.store(try Sample.source(3, bytes: larger)))
    #expect(await tier.quiet())
    #expect(await tier.source(for: Sample.sourceKey(3)) == nil)
    #expect(tier.figures.failures == 1 && tier.figures.evictions == 0)
    #expect(tier.figures.sources.entries == 3)
  }

  @Test func `a store beyond the write queue's limit is dropped, counted and not readable`()
    async throws
  {
    let tier = try open(limit: 64 << 20) { $0.writeQueueLimit = 1_000_000 }
    #expect(await tier.ready())
    await tier.keep(Sample.variant(1, bytes: Sample.bytes(100)))
    tier.store(Sample.variant(1, bytes: Sample.bytes(2_000_000)))
    #expect(await tier.variant(for: Sample.variantKey(1)) == nil)
    #expect(tier.figures.failures == 1)
    #expect(await tier.quiet())
    await tier.keep(Sample.variant(1, bytes: Sample.bytes(500)))
    #expect(await tier.variant(for: Sample.variantKey(1))?.body.count == 500)
  }
}
