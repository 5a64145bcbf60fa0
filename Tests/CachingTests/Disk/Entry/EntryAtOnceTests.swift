// EntryAtOnceTests: non-blocking reads of small variants in the page cache.

import CLinux
import Core
import Glibc
import TestSupport
import Testing

@testable import Caching

/// Whether the kernel and the file system of the tests support non-blocking reads.
let systemReadsAtOnce: Bool = {
  guard let folder = try? TemporaryFolder() else { return false }
  let path = folder.path + "/probe"
  let made = open(path, O_CREAT | O_WRONLY, 0o600)
  defer { close(made) }
  var byte: UInt8 = 1
  guard made >= 0, write(made, &byte, 1) == 1 else { return false }
  let descriptor = pictor_linux_open_cached(AT_FDCWD, path)
  guard descriptor >= 0 else { return false }
  defer { close(descriptor) }
  return pictor_linux_read_cached(descriptor, &byte, 1, 0) == 1
}()

@Suite(.onOwnThreads) final class EntryAtOnceTests: DiskFolderTests {
  private func openTier() async throws -> DiskTier {
    let tier = try open()
    #expect(await tier.ready())
    return tier
  }

  @Test(.enabled(if: systemReadsAtOnce))
  func `a small variant on disk is read without blocking and counts as a hit`() async throws {
    let variant = Sample.variant(1, bytes: Sample.bytes(18_000))
    let first = try await openTier()
    first.store(variant)
    await first.shutDown(within: .seconds(10))

    let tier = try await openTier()
    let found = try #require(tier.variantAtOnce(for: variant.key, where: { _ in true }))
    #expect(found.bytes == variant.bytes)
    #expect(found.info == variant.info)
    #expect(tier.figures.hits == 1)
  }

  @Test(.enabled(if: systemReadsAtOnce))
  func `a variant that the caller rejects is not counted, and a closed tier finds nothing`()
    async throws
  {
    let tier = try await openTier()
    let variant = Sample.variant(1, bytes: Sample.bytes(100))
    await tier.keep(variant)
    #expect(tier.variantAtOnce(for: variant.key) { $0.etag == "another" } == nil)
    #expect(tier.figures.hits == 0)
    #expect(tier.variantAtOnce(for: variant.key) { $0 == variant.info } != nil)
    await tier.shutDown(within: .seconds(10))
    #expect(tier.variantAtOnce(for: variant.key) { _ in true } == nil)
  }

  @Test func `large variants, sources, absent and removed entries are left to the blocking read`()
    async throws
  {
    let tier = try await openTier()
    let large = Sample.variant(1, bytes: Sample.bytes(EntryFile.longestAtOnce))
    let removed = Sample.variant(2, bytes: Sample.bytes(10))
    tier.store(large)
    tier.store(removed)
    tier.store(try Sample.source(3, bytes: Sample.bytes(10)))
    #expect(await tier.quiet())
    await tier.remove(removed.key)
    #expect(tier.variantAtOnce(for: large.key) { _ in true } == nil)
    #expect(tier.variantAtOnce(for: removed.key) { _ in true } == nil)
    #expect(tier.variantAtOnce(for: Sample.sourceKey(3)) { _ in true } == nil)
    #expect(tier.variantAtOnce(for: Sample.variantKey(4)) { _ in true } == nil)
    #expect(tier.figures.hits == 0)
    #expect(tier.figures.misses == 0)
    #expect(await tier.variant(for: large.key)?.bytes == large.bytes)
  }

  @Test(.enabled(if: systemReadsAtOnce))
  func `a damaged, truncated, extended or foreign file is a miss without blocking`()
    async throws
  {
    let tier = try await openTier()
    let changes: [(String, (CInt, Int) -> Void)] = [
      (
        "a flipped byte of the body",
        { descriptor, size in
          var byte: UInt8 = 0
          pread(descriptor, &byte, 1, size - 3)
          byte ^= 0x10
          pwrite(descriptor, &byte, 1, size - 3)
        }
      ),
      ("cut", { descriptor, size in ftruncate(descriptor, size - 1) }),
      (
        "lengthened",
        { descriptor, size in
          var byte: UInt8 = 0
          pwrite(descriptor, &byte, 1, size)
        }
      ),
      ("emptied", { descriptor, _ in ftruncate(descriptor, 0) }),
    ]
    for (number, (what, change)) in changes.enumerated() {
      let variant = Sample.variant(number, bytes: Sample.bytes(3_000, seed: number))
      await tier.keep(variant)
      #expect(tier.variantAtOnce(for: variant.key) { _ in true } != nil)
      let descriptor = Glibc.open(tier.path(of: variant.key), O_RDWR)
      var status = stat()
      fstat(descriptor, &status)
      change(descriptor, Int(status.st_size))
      close(descriptor)
      #expect(tier.variantAtOnce(for: variant.key) { _ in true } == nil, "\(what)")
      // A blocking read detects and removes it.
      #expect(await tier.variant(for: variant.key) == nil, "\(what)")
      #expect(tier.figures.damaged == number + 1, "\(what)")
    }
    let one = Sample.variant(10, bytes: [1, 2, 3])
    let other = Sample.variant(11, bytes: [4, 5, 6])
    tier.store(one)
    await tier.keep(other)
    rename(tier.path(of: one.key), tier.path(of: other.key))
    #expect(tier.variantAtOnce(for: other.key) { _ in true } == nil)
  }

  @Test(.enabled(if: systemReadsAtOnce))
  func `a non-blocking read counts as a use and updates the file's access time`() async throws {
    let tier = try await openTier()
    let variant = Sample.variant(1, bytes: Sample.bytes(100))
    await tier.keep(variant)
    clock.advance(by: 3_600)
    #expect(tier.variantAtOnce(for: variant.key) { _ in true } != nil)
    let path = tier.path(of: variant.key)
    let now = clock.now.seconds
    try await eventually {
      var status = stat()
      return stat(path, &status) == 0 && status.st_atim.tv_sec == now
    }
  }
}
