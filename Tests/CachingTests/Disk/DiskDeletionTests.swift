// DiskDeletionTests: the disk tier when another process deletes its files or takes its folder.

import Core
import Glibc
import TestSupport
import Testing

@testable import Caching

@Suite(.onOwnThreads) final class DiskDeletionTests: DiskFolderTests {
  @Test func `a cache folder deleted at run time is recreated, and the accounted size follows`()
    async throws
  {
    let tier = try open()
    for number in 0..<50 { tier.store(Sample.variant(number, bytes: Sample.bytes(3_000))) }
    #expect(await tier.quiet())
    TemporaryFolder.remove(cache)
    #expect(await tier.variant(for: Sample.variantKey(1)) == nil)
    await tier.keep(Sample.variant(1, bytes: Sample.bytes(3_000)))
    #expect(await tier.variant(for: Sample.variantKey(1)) != nil)
    try await eventually { tier.figures.entries == 1 }
    try await eventually { tier.figures.bytes == TemporaryFolder.diskUsage(of: cache) }
    #expect(throws: DiskTierError.inUse(path: cache)) { _ = try open() }
  }

  @Test(arguments: ["tmp", "v", "s"])
  func `a subfolder deleted at run time is recreated`(part: String) async throws {
    let tier = try open()
    for number in 0..<50 { tier.store(Sample.variant(number, bytes: Sample.bytes(3_000))) }
    #expect(await tier.quiet())
    TemporaryFolder.remove(cache + "/" + part)
    for number in 0..<50 {
      tier.store(Sample.variant(number, bytes: Sample.bytes(2_000)))
      tier.store(try Sample.source(number, bytes: Sample.bytes(2_000)))
    }
    #expect(await tier.quiet())
    try await eventually { tier.figures.entries == 100 }
    try await eventually { tier.figures.bytes == TemporaryFolder.diskUsage(of: cache) }
    #expect(tier.figures.failures == 0)
  }

  @Test func `a file deleted by another process is a miss and no longer counts`() async throws {
    let tier = try open()
    await tier.keep(Sample.variant(1, bytes: Sample.bytes(100)))
    unlink(tier.path(of: Sample.variantKey(1)))
    #expect(await tier.variant(for: Sample.variantKey(1)) == nil)
    #expect(tier.figures.entries == 0)
    #expect(tier.figures.bytes == TemporaryFolder.diskUsage(of: cache))
  }

  @Test
  func `entry folders deleted at run time are recreated, and their entries are forgotten`()
    async throws
  {
    let tier = try open()
    for number in 0..<50 { tier.store(Sample.variant(number, bytes: Sample.bytes(3_000))) }
    #expect(await tier.quiet())
    for name in DiskFolder.names(in: cache + "/v") {
      TemporaryFolder.remove(cache + "/v/" + name)
    }
    await tier.keep(Sample.variant(1, bytes: Sample.bytes(2_000)))
    #expect(await tier.variant(for: Sample.variantKey(1))?.body.count == 2_000)
    try await eventually { tier.figures.entries == 1 }
    try await eventually { tier.figures.bytes == TemporaryFolder.diskUsage(of: cache) }
    #expect(tier.figures.failures == 0)
  }

  @Test(arguments: [false, true])
  func `a deleted lock file is locked again`(isByClean: Bool) async throws {
    let tier = try open()
    await tier.keep(Sample.variant(1, bytes: Sample.bytes(100)))
    unlink(cache + "/lock")
    if isByClean {
      await tier.clean()
    } else {
      await tier.keep(Sample.variant(2, bytes: Sample.bytes(100)))
    }
    #expect(throws: DiskTierError.inUse(path: cache)) { _ = try open() }
    #expect(await tier.variant(for: Sample.variantKey(1)) != nil)
    #expect(tier.figures.failures == 0)
    await tier.shutDown(within: .seconds(10))
    // The lock is released afterwards.
    _ = try open()
  }

  @Test func `when another process takes the folder, nothing more is written`() async throws {
    // Given a deleted lock file and another process that takes the lock
    let first = try open()
    await first.keep(Sample.variant(1, bytes: Sample.bytes(100)))
    unlink(cache + "/lock")
    let second = try open()
    #expect(await second.quiet())
    // When the first tier stores, then the entry is not kept, and reads still work.
    await first.keep(Sample.variant(2, bytes: Sample.bytes(100)))
    #expect(await first.variant(for: Sample.variantKey(2)) == nil)
    #expect(await first.variant(for: Sample.variantKey(1)) != nil)
    #expect(first.figures.failures == 1)
    // When it has the folder for itself again, then it writes and knows the other's entries.
    second.store(Sample.variant(3, bytes: Sample.bytes(100)))
    #expect(await second.shutDown(within: .seconds(10)))
    await first.keep(Sample.variant(2, bytes: Sample.bytes(100)))
    #expect(await first.variant(for: Sample.variantKey(2)) != nil)
    try await eventually { first.figures.entries == 3 }
    #expect(await first.variant(for: Sample.variantKey(3)) != nil)
    try await eventually { first.figures.bytes == TemporaryFolder.diskUsage(of: cache) }
  }
}
