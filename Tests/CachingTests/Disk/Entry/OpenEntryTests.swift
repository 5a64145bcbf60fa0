// OpenEntryTests: popular variants' files stay open within a bound, no longer than entries.

import Core
import Glibc
import TestSupport
import Testing

@testable import Caching

@Suite(.onOwnThreads) final class OpenEntryTests: DiskFolderTests {
  private func openTier(openFiles: Int = 64) async throws -> DiskTier {
    let tier = try open { $0.openFiles = openFiles }
    #expect(await tier.ready())
    return tier
  }

  private func openCount(_ tier: DiskTier) -> Int { tier.parts?.store.openEntries.count ?? -1 }

  private func read(_ key: CacheKey, in tier: DiskTier) -> Variant? {
    tier.variantAtOnce(for: key) { _ in true }
  }

  /// Stores a variant and reads it until its file is kept open.
  private func keep(_ variant: Variant, in tier: DiskTier) async throws {
    await tier.keep(variant)
    // The kernel may decline a read that another one disturbs.
    try await eventually {
      self.read(variant.key, in: tier)?.bytes == variant.bytes && self.openCount(tier) == 1
    }
    let found = try #require(read(variant.key, in: tier))
    #expect(found.bytes == variant.bytes)
    #expect(found.info == variant.info)
  }

  private let variant = Sample.variant(1, bytes: Sample.bytes(5_000))

  @Test(.enabled(if: systemReadsAtOnce))
  func `the file of a variant stays open from its second read`() async throws {
    let tier = try await openTier()
    await tier.keep(variant)
    try await eventually { self.read(self.variant.key, in: tier) != nil }
    #expect(openCount(tier) == 0)
    try await keep(variant, in: tier)
    #expect(tier.figures.hits >= 3)
    #expect(tier.figures.openFiles == 1)
    await tier.shutDown(within: .seconds(10))
    #expect(openCount(tier) == 0)
  }

  @Test(.enabled(if: systemReadsAtOnce))
  func `an open file is closed and not served after a purge, a removal, a clear and a replacement`()
    async throws
  {
    let tier = try await openTier()
    let purge = Purge(number: 7, scope: .url(try SourceURL(parsing: Sample.sourceKey(1).text)))
    let ends: [(String, () async throws -> Void)] = [
      ("purge", { _ = try await tier.purge(purge) }),
      ("removal", { [key = variant.key] in await tier.remove(key) }),
      (
        "variants of the source",
        { [key = variant.key] in await tier.removeVariants(of: key.source) }
      ),
      ("clear", { try await tier.clear() }),
    ]
    for (what, end) in ends {
      try await keep(variant, in: tier)
      try await end()
      #expect(read(variant.key, in: tier) == nil, "\(what)")
      try await eventually { self.openCount(tier) == 0 }
    }
    try await keep(variant, in: tier)
    let other = Sample.variant(variant.key, bytes: Sample.bytes(5_000, seed: 3), etag: "\"2\"")
    await tier.keep(other)
    #expect(openCount(tier) == 0)
    #expect(read(variant.key, in: tier)?.bytes == other.bytes)
  }

  @Test(.enabled(if: systemReadsAtOnce))
  func `a purge in force covers an open file whose entry is not removed yet`() async throws {
    // Given
    let tier = try open()
    #expect(await tier.ready())
    try await keep(variant, in: tier)
    // When the purge is in the list, before the disk tier hears of it
    _ = purges.add(.url(try SourceURL(parsing: Sample.sourceKey(1).text)))
    // Then
    #expect(read(variant.key, in: tier) == nil)
  }

  @Test(.enabled(if: systemReadsAtOnce))
  func `an open file that another program changes, replaces or deletes is not served`() async throws
  {
    let tier = try await openTier()
    let changes: [(String, (String) -> Void)] = [
      (
        "changed in place",
        { path in
          let descriptor = Glibc.open(path, O_RDWR)
          var byte: UInt8 = 0xa5
          pwrite(descriptor, &byte, 1, 4_000)
          close(descriptor)
        }
      ),
      ("cut", { path in truncate(path, 3_000) }),
      ("deleted", { path in unlink(path) }),
      (
        "replaced",
        { path in
          let descriptor = Glibc.open(path + "-new", O_RDWR | O_CREAT, 0o600)
          var byte: UInt8 = 0xa5
          pwrite(descriptor, &byte, 1, 4_000)
          close(descriptor)
          rename(path + "-new", path)
        }
      ),
    ]
    for (what, change) in changes {
      try await keep(variant, in: tier)
      change(tier.path(of: variant.key))
      #expect(read(variant.key, in: tier) == nil, "\(what)")
      #expect(openCount(tier) == 0, "\(what)")
      #expect(await tier.variant(for: variant.key) == nil, "\(what)")
    }
  }

  @Test(.enabled(if: systemReadsAtOnce))
  func `no more files are open than the bound allows, and below 64 none is`() async throws {
    for limit in [0, 63, 64, 200] {
      let tier = try await openTier(openFiles: limit)
      let variants = (0..<400).map { Sample.variant($0, bytes: Sample.bytes(100, seed: $0)) }
      for variant in variants { tier.store(variant) }
      #expect(await tier.quiet())
      for _ in 0..<3 {
        for variant in variants {
          for _ in 0..<2 {
            if let found = read(variant.key, in: tier) { #expect(found.bytes == variant.bytes) }
          }
        }
      }
      let count = openCount(tier)
      #expect(count <= limit && (limit < 64 ? count == 0 : count > 0))
      await tier.shutDown(within: .seconds(10))
      #expect(openCount(tier) == 0)
    }
  }

  @Test func `a file that was opened before a removal is not kept after it`() throws {
    // Given
    let table = OpenEntries(limit: 64)
    let name = EntryDigest(of: variant.key)
    let entry = OpenEntry(
      key: variant.key, info: variant.info, file: FileRegion(owning: -1, count: 0), body: 0..<0,
      fingerprint: 1)
    let first = try #require(table.entry(of: name))
    table.keep(name, since: first.visit, entry)
    // When
    let second = try #require(table.entry(of: name))
    table.drop(name)
    table.keep(name, since: second.visit, entry)
    // Then
    #expect(table.count == 0)
    let third = try #require(table.entry(of: name))
    table.keep(name, since: third.visit, entry)
    #expect(table.count == 1)
  }
}
