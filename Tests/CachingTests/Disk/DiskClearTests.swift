// DiskClearTests: clearing the disk tier, and look-ups without side effects.

import Core
import FoundationEssentials
import Glibc
import TestSupport
import Testing

@testable import Caching

@Suite(.onOwnThreads) final class DiskClearTests: DiskFolderTests {
  func fill(_ tier: DiskTier, with numbers: Range<Int>) async throws {
    for number in numbers {
      tier.store(try Sample.source(number, bytes: Sample.bytes(2_000)))
      tier.store(Sample.variant(number, bytes: Sample.bytes(100)))
    }
    #expect(await tier.quiet())
  }

  @Test func `the folder is tagged, so that backups leave it out`() async throws {
    let path = "\(cache)/CACHEDIR.TAG"
    _ = try open()
    let start = "Signature: 8a477f597d28d172789f06886806bc55\n"
    #expect(try String(contentsOfFile: path, encoding: .utf8).hasPrefix(start))
  }

  @Test func `after a clear every entry is a miss, its file is removed, and new entries stay`()
    async throws
  {
    let tier = try open()
    try await fill(tier, with: 0..<200)
    #expect(try await tier.clear() == 400)
    for number in 0..<200 {
      #expect(await tier.variant(for: Sample.variantKey(number)) == nil)
      #expect(await tier.source(for: Sample.sourceKey(number)) == nil)
      #expect(await tier.look(for: Sample.sourceKey(number)) == nil)
    }
    // Under a name that was cleared, too
    try await fill(tier, with: 0..<5)
    try await eventually { tier.figures.purgesPending == 0 }
    #expect(entryCount() == 10)
    #expect(tier.figures.entries == 10)
    #expect(tier.figures.purged == 400)
    #expect(tier.figures.evictions == 0)
    for number in 0..<5 { #expect(await tier.variant(for: Sample.variantKey(number)) != nil) }
    #expect(try await tier.clear() == 10)
    try await eventually { tier.figures.purgesPending == 0 }
    #expect(try await tier.clear() == 0)
    await tier.shutDown(within: .seconds(10))
    #expect(tier.figures.bytes == TemporaryFolder.diskUsage(of: cache))
  }

  @Test func `a clear that cannot be recorded is an error and still applies to this run`()
    async throws
  {
    // Given a folder where the purge journal cannot be replaced
    let tier = try open()
    try await fill(tier, with: 0..<5)
    mkdir("\(cache)/purges", 0o700)
    // Then
    let error = await #expect(throws: ImageError.self) { try await tier.clear() }
    #expect(error?.status == 500)
    #expect(await tier.source(for: Sample.sourceKey(1)) == nil)
    rmdir("\(cache)/purges")
    #expect(try await tier.clear() == 0)
  }

  @Test
  func `a clear removes and counts pending writes, and the accounted size stays exact`()
    async throws
  {
    let first = try open()
    try await fill(first, with: 0..<50)
    #expect(await first.shutDown(within: .seconds(10)))
    let parts = try DiskEngine(folder, purges: Purges())
    parts.store.scan { false }
    // Given a pending write that replaces an entry and one of a new entry
    for number in [1, 1_000] {
      #expect(parts.storeEntry(.variant(Sample.variant(number, bytes: Sample.bytes(30)))))
    }
    try parts.sweeper.start()
    #expect(await parts.sweeper.perform(.clear).count == 101)
    #expect(parts.store.pending.isEmpty)
    #expect(await parts.find(Sample.variantKey(1_000)) == nil)
    parts.threads.release()
    // When the files are removed, then the accounting is right after each one.
    #expect(parts.sweeper.isClearing)
    #expect(entryCount() == 100)
    var steps = 0
    let result = parts.store.sweep([]) {
      steps += 1
      #expect(parts.store.space.bytes == TemporaryFolder.diskUsage(of: cache))
      return false
    }
    #expect(result.isComplete && steps == 100)
    #expect(entryCount() == 0)
    parts.sweeper.stop()
    #expect(parts.sweeper.waitForEnd(within: .seconds(10)))
    #expect(parts.threads.finish(within: .seconds(10)))
    #expect(parts.store.space.bytes == TemporaryFolder.diskUsage(of: cache))
  }

  @Test func `a clear before the index is complete makes every entry a miss`() async throws {
    let first = try open()
    try await fill(first, with: 0..<50)
    #expect(await first.shutDown(within: .seconds(10)))
    let parts = try DiskEngine(folder, purges: Purges())
    // Given a half-built index
    parts.store.scan { parts.store.index.count > 20 }
    #expect((1..<100).contains(parts.store.index.count))
    try parts.sweeper.start()
    #expect(await parts.sweeper.perform(.clear).count == 100)
    func found() async -> Int {
      var found = 0
      for number in 0..<50 where await parts.find(Sample.sourceKey(number)) != nil { found += 1 }
      return found
    }
    #expect(await found() == 0)
    parts.store.scan { false }
    #expect(await found() == 0)
    parts.sweeper.begin()
    try await eventually { !parts.sweeper.isClearing }
    #expect(entryCount() == 0)
    parts.sweeper.stop()
    #expect(parts.sweeper.waitForEnd(within: .seconds(10)))
    #expect(parts.store.space.bytes == TemporaryFolder.diskUsage(of: cache))
  }

  @Test func `a clear continues after a restart and keeps entries stored after it`() async throws {
    // Given entries stored before and after the clear, and a run that ended in between
    let first = try open()
    try await fill(first, with: 0..<20)
    clock.advance(by: 10)
    let cleared = clock.now
    clock.advance(by: 10)
    try await fill(first, with: 20..<30)
    #expect(await first.shutDown(within: .seconds(10)))
    try folder.write("cache/purges", bytes: Array("\(cleared.seconds) clear\n".utf8))
    let second = try open()
    // Then no old entry is found at any time.
    for number in 0..<20 { #expect(await second.source(for: Sample.sourceKey(number)) == nil) }
    try await eventually { second.isIndexed && second.figures.purgesPending == 0 }
    #expect(entryCount() == 20)
    for number in 20..<30 { #expect(await second.source(for: Sample.sourceKey(number)) != nil) }
    await second.shutDown(within: .seconds(10))
    #expect(FileRegion(cache + "/purges")?.bytes == [])
  }

  @Test func `a look returns the metadata of stored and pending entries without side effects`()
    async throws
  {
    let parts = try DiskEngine(folder, purges: Purges())
    parts.store.scan { false }
    let variant = Sample.variant(
      "https://a.example/ w=1", generation: 7, bytes: Sample.bytes(5_000))
    let source = try Sample.source("https://a.example/", generation: 8, bytes: Sample.bytes(70_000))
    let expected = [
      CacheEntryInfo(variant), CacheEntryInfo(source),
    ]
    #expect(parts.storeEntry(.variant(variant)))
    #expect(parts.storeEntry(.source(source)))
    #expect(await parts.look(variant.key) == expected[0])
    #expect(await parts.look(source.key) == expected[1])
    parts.threads.release()
    #expect(parts.threads.finish(within: .seconds(10)))
    parts.store.folder.unlock()
    // Files of the future would count as new.
    clock.advance(by: time(nil) - clock.now.seconds)
    let tier = try open()
    #expect(await tier.ready())
    // Given files that were not used for a day and have damaged bodies
    for key in [variant.key, source.key] {
      let path = tier.path(of: key)
      let descriptor = Glibc.open(path, O_WRONLY)
      var status = stat()
      #expect(fstat(descriptor, &status) == 0)
      #expect(pwrite(descriptor, "damage", 6, status.st_size - 100) == 6)
      let day = timespec(tv_sec: status.st_mtim.tv_sec - 86_400, tv_nsec: 0)
      var times = (day, day)
      withUnsafeBytes(of: &times) {
        _ = futimens(descriptor, $0.bindMemory(to: timespec.self).baseAddress)
      }
      close(descriptor)
    }
    func accessTimes() -> [Int] {
      [variant.key, source.key].map { key in
        var status = stat()
        lstat(tier.path(of: key), &status)
        return status.st_atim.tv_sec
      }
    }
    let figures = tier.figures
    let times = accessTimes()
    #expect(await tier.look(for: variant.key) == expected[0])
    #expect(await tier.look(for: source.key) == expected[1])
    #expect(await tier.look(for: CacheKey(text: "https://a.example/ w=2")) == nil)
    #expect(tier.figures == figures)
    #expect(accessTimes() == times)
    // A damaged prefix yields nothing; only a read removes the file.
    truncate(tier.path(of: source.key), 20)
    #expect(await tier.look(for: source.key) == nil)
    #expect(tier.figures == figures)
  }
}
