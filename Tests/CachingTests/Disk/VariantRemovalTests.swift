// VariantRemovalTests: every variant of a source is removed from both tiers in every state, and no
// other entry.

import Core
import Glibc
import TestSupport
import Testing

@testable import Caching

@Suite(.onOwnThreads) final class VariantRemovalTests: DiskFolderTests {
  /// Keys that look like those of variants of source 1 and are not.
  static let lookAlikes = [
    "https://images.example/1.jpgx w=1", "https://images.example/1.jp w=1",
    "https://images.example/1.jpg?w=1 w=1", "https://images.example/2.jpg w=1",
    "https://images.exbmple/1.jpg w=1", "https://images.example/11.jpg w=1",
  ].map { CacheKey(text: $0) }

  /// Creates the parts of a tier without an index and without the thread that builds it. Writes
  /// wait until they are allowed.
  func parts() throws -> DiskEngine { try DiskEngine(folder, purges: Purges()) }

  @Test func `a variant's key is distinguished from keys that resemble it`() {
    let source = Sample.sourceKey(1)
    #expect(Sample.variantKey(1, width: 5).isVariant(of: source))
    #expect(CacheKey(text: source.text + " crop=1,2,3,4 w=5").isVariant(of: source))
    #expect(!source.isVariant(of: source))
    #expect(
      !CacheKey(text: source.text + " w=55").isVariant(of: CacheKey(text: source.text + " w=5")))
    for key in Self.lookAlikes { #expect(!key.isVariant(of: source), "\(key)") }
    // One character may have several bytes, so lengths in characters differ from lengths in bytes.
    let umlaut = CacheKey(text: "https://a.example/\u{fc}")
    #expect(CacheKey(text: "https://a.example/\u{fc} w=1").isVariant(of: umlaut))
    #expect(!CacheKey(text: "https://a.example/u\u{308} w=1").isVariant(of: umlaut))
  }

  @Test func `in memory, all variants of a source are removed, and none counts as evicted`() {
    let tier = MemoryTier()
    let others = Self.lookAlikes.map { Sample.variant($0, bytes: Sample.bytes(100)) }
    for other in others { tier.store(other) }
    let before = tier.figures
    for width in 1...100 {
      tier.store(Sample.variant(Sample.variantKey(1, width: width), bytes: Sample.bytes(100)))
    }
    tier.removeVariants(of: Sample.sourceKey(1))
    for width in 1...100 { #expect(tier.peek(Sample.variantKey(1, width: width)) == nil) }
    for other in others { #expect(tier.peek(other.key) === other) }
    #expect(tier.figures.entries == before.entries)
    #expect(tier.figures.bytes == before.bytes)
    #expect(tier.figures.evictions == 0)
    // A variant's key is no source's key.
    tier.removeVariants(of: others[0].key)
    #expect(tier.peek(others[0].key) != nil)
  }

  @Test
  func `on disk, all variants of a source are removed with their files, and the source stays`()
    async throws
  {
    let tier = try open()
    tier.store(try Sample.source(1, bytes: Sample.bytes(3_000)))
    // More files than one job removes.
    for width in 1...150 {
      tier.store(Sample.variant(Sample.variantKey(1, width: width), bytes: Sample.bytes(100)))
    }
    for key in Self.lookAlikes { tier.store(Sample.variant(key, bytes: Sample.bytes(100))) }
    #expect(await tier.quiet())
    await tier.removeVariants(of: Sample.sourceKey(1))
    #expect(fileCount("v") == Self.lookAlikes.count)
    for width in 1...150 {
      #expect(await tier.variant(for: Sample.variantKey(1, width: width)) == nil)
    }
    for key in Self.lookAlikes { #expect(await tier.variant(for: key) != nil) }
    #expect(await tier.source(for: Sample.sourceKey(1)) != nil)
    #expect(tier.figures.entries == Self.lookAlikes.count + 1)
    #expect(tier.figures.evictions == 0)
    #expect(tier.figures.expirations == 0)
    #expect(tier.figures.bytes == TemporaryFolder.diskUsage(of: cache))
  }

  @Test func `removing variants of a variant's key or of an unknown source removes nothing`()
    async throws
  {
    let tier = try open()
    await tier.keep(Sample.variant(1, bytes: Sample.bytes(10)))
    await tier.removeVariants(of: Sample.variantKey(1))
    await tier.removeVariants(of: Sample.sourceKey(2))
    #expect(await tier.variant(for: Sample.variantKey(1)) != nil)
  }

  @Test func `pending variants are removed at once and never written`()
    async throws
  {
    // Given one variant on disk with a pending replacement, two pending variants, and one of
    // another source.
    let first = try open()
    first.store(Sample.variant(Sample.variantKey(1, width: 1), bytes: Sample.bytes(10)))
    #expect(await first.shutDown(within: .seconds(10)))
    let parts = try parts()
    parts.store.scan { false }
    for width in 1...3 {
      let variant = Sample.variant(Sample.variantKey(1, width: width), bytes: Sample.bytes(20))
      #expect(parts.storeEntry(.variant(variant)))
    }
    #expect(parts.storeEntry(.variant(Sample.variant(2, bytes: Sample.bytes(30)))))
    #expect(parts.storeEntry(.source(try Sample.source(1, bytes: Sample.bytes(40)))))
    // When the source's variants are removed before writes are allowed
    await parts.removeVariants(of: Sample.sourceKey(1))
    // Then none of them is found, and none is written afterwards.
    for width in 1...3 { #expect(await parts.find(Sample.variantKey(1, width: width)) == nil) }
    #expect(await parts.find(Sample.variantKey(2)) != nil)
    #expect(fileCount("v") == 0)
    parts.threads.release()
    #expect(parts.threads.finish(within: .seconds(10)))
    #expect(fileCount("v") == 1)
    #expect(fileCount("s") == 1)
    #expect(parts.store.index.count == 2)
    #expect(parts.store.space.bytes == TemporaryFolder.diskUsage(of: cache))
  }

  @Test
  func `a revoked write is not placed, and one already placed is removed`()
    async throws
  {
    let parts = try parts()
    parts.store.scan { false }
    let keys = [Sample.variantKey(1, width: 1), Sample.variantKey(1, width: 2)]
    let entries = keys.map { DiskEntry.variant(Sample.variant($0, bytes: Sample.bytes(10))) }
    // Given two claimed writes; one is complete except for `finish`
    let tickets = entries.map { PendingWrites.Ticket(storing: $0) }
    for ticket in tickets {
      _ = parts.store.pending.add(ticket)
      #expect(parts.store.pending.claim(ticket.key, onlyRemoval: false) === ticket)
    }
    guard case .placed = try parts.store.place(entries[0], ticket: tickets[0]) else {
      Issue.record("not placed")
      return
    }
    await parts.removeVariants(of: Sample.sourceKey(1))
    // When the disk threads continue
    parts.store.pending.finish(tickets[0])
    parts.store.write(tickets[1])
    // Then both entries are absent.
    for key in keys { #expect(await parts.find(key) == nil) }
    #expect(fileCount("v") == 0)
    #expect(fileCount("tmp") == 0)
    #expect(parts.store.pending.bytes == 0)
    #expect(parts.threads.finish(within: .seconds(10)))
  }

  @Test func `a file placed while its write is revoked is a tombstone until it is unlinked`()
    async throws
  {
    let parts = try parts()
    parts.store.scan { false }
    let entry = DiskEntry.variant(Sample.variant(1, bytes: Sample.bytes(10)))
    let ticket = PendingWrites.Ticket(storing: entry)
    _ = parts.store.pending.add(ticket)
    // Given a write that passed its check just before its ticket is revoked
    let family = EntryGroup.variants(of: Sample.sourceKey(1))
    _ = try parts.store.place(entry, ticket: ticket)
    let removals = parts.store.pending.revoke { ticket, _ in
      family.contains(ticket.digest, kind: EntryKind(of: ticket.key))
    }
    #expect(removals.map(\.key) == [entry.key])
    // Then the removal comes last, with or without an index.
    #expect(await parts.find(entry.key) == nil)
    #expect(parts.findAtOnce(entry.key) { _ in true } == nil)
    parts.store.write(try #require(parts.store.pending.claim(entry.key, onlyRemoval: true)))
    #expect(fileCount("v") == 0)
    #expect(parts.store.pending.isEmpty)
    #expect(parts.threads.finish(within: .seconds(10)))
  }

  @Test func `while the index is incomplete, the folder is listed`() async throws {
    // Given variants and a source on disk, and another source whose variants share the folder.
    let one = EntryDigest(of: Sample.sourceKey(1))
    let neighbour = try #require(
      (2..<1_000_000).first { EntryDigest(of: Sample.sourceKey($0)).folder == one.folder })
    let first = try open()
    for width in 1...50 {
      first.store(Sample.variant(Sample.variantKey(1, width: width), bytes: Sample.bytes(10)))
    }
    first.store(Sample.variant(neighbour, bytes: Sample.bytes(10)))
    first.store(try Sample.source(1, bytes: Sample.bytes(10)))
    #expect(await first.shutDown(within: .seconds(10)))
    // When the variants are removed before the index is built
    let parts = try parts()
    await parts.removeVariants(of: Sample.sourceKey(1))
    // Then only they are gone.
    for width in 1...50 { #expect(await parts.find(Sample.variantKey(1, width: width)) == nil) }
    #expect(await parts.find(Sample.variantKey(neighbour)) != nil)
    #expect(await parts.find(Sample.sourceKey(1)) != nil)
    parts.store.scan { false }
    #expect(parts.store.index.count == 2)
    #expect(parts.store.space.bytes == TemporaryFolder.diskUsage(of: cache))
    #expect(parts.threads.finish(within: .seconds(10)))
  }

  @Test func `a shut-down finishes a removal that has begun`() async throws {
    let tier = try open()
    for width in 1...150 {
      tier.store(Sample.variant(Sample.variantKey(1, width: width), bytes: Sample.bytes(10)))
    }
    #expect(await tier.quiet())
    let parts = try #require(tier.parts)
    await withCheckedContinuation { continuation in
      parts.remove(.variants(of: Sample.sourceKey(1))) { _ in continuation.resume() }
      #expect(parts.shutDown(.seconds(10)))
    }
    #expect(fileCount("v") == 0)
  }

  @Test func `a disabled or closed tier removes nothing and does not hang`()
    async throws
  {
    let off = try DiskTier(Sample.configuration(folder, limit: 0), log: .silent)
    await off.removeVariants(of: Sample.sourceKey(1))
    let ended = try open()
    ended.store(Sample.variant(1, bytes: Sample.bytes(10)))
    await ended.shutDown(within: .seconds(10))
    await ended.removeVariants(of: Sample.sourceKey(1))
    #expect(await ended.variant(for: Sample.variantKey(1)) == nil)
  }
}
