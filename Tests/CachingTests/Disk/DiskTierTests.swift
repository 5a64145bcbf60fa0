// DiskTierTests: stored entries are read back, now and after a restart.

import Core
import Glibc
import TestSupport
import Testing

@testable import Caching

@Suite(.onOwnThreads) final class DiskTierTests: DiskFolderTests {
  @Test func `variants and sources survive a restart with all metadata`() async throws {
    let bytes = Sample.bytes(300_000, seed: 3)
    let first = try open()
    let variant = Sample.variant(1, bytes: Sample.bytes(5_000))
    first.store(variant)
    let stored = try Sample.source(1, bytes: bytes)
    first.store(stored)
    #expect(await first.shutDown(within: .seconds(10)))

    let second = try open()
    let found = try #require(await second.variant(for: variant.key))
    #expect(found.bytes == variant.bytes)
    #expect(found.info == variant.info)
    #expect(found.isInMemory)
    let source = try #require(await second.source(for: Sample.sourceKey(1)))
    #expect(source.bytes == bytes)
    #expect(source.origin == Sample.origin)
    #expect(source.freshness == Sample.freshness)
    #expect(source.version == stored.version)
    #expect(source.file.offset % 64 == 0)
    #expect(second.figures.hits == 2)
  }

  @Test func `reading a source without a version gives it none`() async throws {
    let tier = try open()
    let source = try Sample.source(1, bytes: Sample.bytes(10))
    tier.store(
      Source(
        key: source.key, file: source.file, origin: source.origin, freshness: source.freshness,
        version: 0))
    #expect(await tier.quiet())
    #expect(await tier.source(for: source.key)?.version == 0)
  }

  @Test func `large variants are returned as files, small ones in memory`() async throws {
    let tier = try open { $0.promotionThreshold = 100_000 }
    let small = Sample.variant(1, bytes: Sample.bytes(100_000))
    let large = Sample.variant(2, bytes: Sample.bytes(100_001))
    tier.store(small)
    await tier.keep(large)
    let foundSmall = try #require(await tier.variant(for: small.key))
    let foundLarge = try #require(await tier.variant(for: large.key))
    #expect(foundSmall.isInMemory)
    #expect(!foundLarge.isInMemory)
    #expect(foundSmall.bytes == small.bytes)
    #expect(foundLarge.bytes == large.bytes)
  }

  @Test(.enabled(if: systemReadsAtOnce, "needs non-blocking reads of files"))
  func `a variant without room in memory is returned as a file`() async throws {
    // Given
    let memory = ByteBudget(limit: 10_000)
    let tier = try open(memory: memory)
    for number in 1...2 { tier.store(Sample.variant(number, bytes: Sample.bytes(6_000))) }
    #expect(await tier.quiet())
    // When
    let keys = (1...2).map { Sample.variant($0, bytes: []).key }
    let first = try #require(tier.variantAtOnce(for: keys[0]) { _ in true })
    let second = try #require(await tier.variant(for: keys[1]))
    // Then
    // The head of the file is read into the same memory.
    #expect(first.isInMemory && (6_001..<7_000).contains(memory.used))
    #expect(tier.variantAtOnce(for: keys[1]) { _ in true } == nil)
    #expect(!second.isInMemory && second.bytes == Sample.bytes(6_000))
  }

  @Test func `a variant in memory is independent of its file`() async throws {
    // Given a body that could be mapped and may be read into memory
    let tier = try open { $0.promotionThreshold = 4 << 20 }
    let variant = Sample.variant(1, bytes: Sample.bytes(2 << 20))
    await tier.keep(variant)
    let found = try #require(await tier.variant(for: variant.key))
    #expect(found.isInMemory)
    // When the file is truncated, then the bytes are still valid; a mapping would end the process
    #expect(truncate(tier.path(of: variant.key), 0) == 0)
    #expect(found.bytes == variant.bytes)
  }

  @Test func `an empty body and a very long key are read back`() async throws {
    let tier = try open()
    let key = CacheKey(text: "https://a.example/" + String(repeating: "ü", count: 60_000) + " w=1")
    await tier.keep(Variant(key: key, info: Sample.info(), body: .memory(Sample.body([]))))
    let found = try #require(await tier.variant(for: key))
    #expect(found.bytes.isEmpty)
    #expect(found.key == key)
  }

  @Test func `temporary files of a killed process are removed at the start`() async throws {
    let first = try open()
    await first.shutDown(within: .seconds(10))
    let leftover = folder.path + "/cache/tmp/12"
    close(creat(leftover, 0o600))
    let second = try open()
    #expect(await second.ready())
    #expect(access(leftover, F_OK) != 0)
  }

  @Test func `a limit of 0 or a missing path disables the tier`() async throws {
    let changes: [(inout DiskTierConfiguration) -> Void] = [{ $0.path = nil }, { $0.limit = 0 }]
    for change in changes {
      let tier = try open(change)
      tier.store(Sample.variant(1, bytes: Sample.bytes(10)))
      #expect(await tier.variant(for: Sample.variantKey(1)) == nil)
      await tier.remove(Sample.variantKey(1))
      await tier.clean()
      #expect(await tier.shutDown(within: .seconds(1)))
      #expect(tier.figures.limit == 0 && tier.figures.stores == 0)
    }
    #expect(access(folder.path + "/cache", F_OK) != 0)
  }

  @Test func `after a shut-down every look-up is a miss and no call hangs`() async throws {
    let tier = try open()
    tier.store(Sample.variant(1, bytes: Sample.bytes(10)))
    #expect(await tier.shutDown(within: .seconds(10)))
    tier.store(Sample.variant(2, bytes: Sample.bytes(10)))
    #expect(await tier.variant(for: Sample.variantKey(1)) == nil)
    #expect(await tier.variant(for: Sample.variantKey(2)) == nil)
    await tier.remove(Sample.variantKey(1))
    await tier.clean()
    #expect(await tier.shutDown(within: .seconds(10)))
  }
}
