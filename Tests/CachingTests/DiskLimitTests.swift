// DiskLimitTests: the disk tier's limit, its cleans, and what happens when the disk says no.

import Glibc
import Model
import Platform
import Telemetry
import TestSupport
import Testing

@testable import Caching

struct DiskLimitTests {
  let folder: TemporaryFolder
  let clock = TestClock()
  var cache: String { folder.path + "/cache" }

  init() throws { folder = try TemporaryFolder() }

  func open(limit: Int, _ change: (inout DiskTierConfiguration) -> Void = { _ in }) throws
    -> DiskTier
  {
    var configuration = Sample.configuration(folder, limit: limit)
    change(&configuration)
    return try DiskTier(configuration, log: .silent) { [clock] in clock.now }
  }

  @Test func `what du counts never exceeds the limit, and is what the tier says`() async throws {
    let limit = 2 << 20
    let tier = try open(limit: limit)
    var random = SeededGenerator(seed: 1)
    for number in 0..<600 {
      tier.store(
        Sample.variant(number, Sample.bytes(Int.random(in: 0..<40_000, using: &random))))
      if number % 10 == 0 {
        _ = await tier.quiet()
        #expect(TemporaryFolder.diskUsage(of: cache) <= limit)
      }
      if number % 50 == 0 { clock.advance(by: 1) }
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
    await second.shutDown(within: .seconds(10))
  }

  @Test func `a clean first removes what is too old, and nothing else below the limit`()
    async throws
  {
    let tier = try open(limit: 64 << 20) { $0.maximumAge = 100 }
    for number in 0..<10 { tier.store(Sample.variant(number, Sample.bytes(100))) }
    #expect(await tier.quiet())
    clock.advance(by: 60)
    for number in 10..<20 { tier.store(Sample.variant(number, Sample.bytes(100))) }
    #expect(await tier.quiet())
    clock.advance(by: 41)
    await tier.clean()
    #expect(tier.figures.expirations == 10)
    #expect(tier.figures.evictions == 0)
    for number in 0..<20 {
      #expect((await tier.variant(for: Sample.variantKey(number)) != nil) == (number >= 10))
    }
    await tier.shutDown(within: .seconds(10))
  }

  @Test func `a negative maximum age means never`() async throws {
    let tier = try open(limit: 64 << 20) { $0.maximumAge = -1 }
    tier.store(Sample.variant(1, Sample.bytes(100)))
    #expect(await tier.quiet())
    clock.advance(by: 1_000_000_000)
    await tier.clean()
    #expect(tier.figures.entries == 1)
    await tier.shutDown(within: .seconds(10))
  }

  @Test func `a full tier is cleaned to half, least recently used first, across a restart`()
    async throws
  {
    // Given fifty entries, of which the first ten were used last, over an hour ago.
    let first = try open(limit: 64 << 20)
    for number in 0..<50 {
      first.store(Sample.variant(number, Sample.bytes(60_000)))
      #expect(await first.quiet())
      clock.advance(by: 10)
    }
    clock.advance(by: 3_600)
    for number in 0..<10 { #expect(await first.variant(for: Sample.variantKey(number)) != nil) }
    await first.shutDown(within: .seconds(10))

    // When a process with a lower limit starts.
    let limit = 2 << 20
    let second = try open(limit: limit)
    #expect(await eventually { second.isIndexed && second.figures.bytes <= limit / 2 })
    // The plan did not know of the folders that get empty, so the first clean goes on a little: it is waited for.
    await second.clean()

    // Then the least recently used are gone.
    #expect(TemporaryFolder.diskUsage(of: cache) == second.figures.bytes)
    let kept = second.figures.entries
    #expect(kept > 11)
    for number in 0..<50 {
      let isKept = await second.variant(for: Sample.variantKey(number)) != nil
      #expect(isKept == (number < 10 || number >= 50 - (kept - 10)))
    }
    await second.shutDown(within: .seconds(10))
  }

  @Test func `the plan of a clean frees what is asked and no second more`() {
    func entries(_ seconds: [Int]) -> [(access: UnixTime, bytes: Int)] {
      seconds.map { (UnixTime(seconds: $0), 100) }
    }
    #expect(CleanPlan(freeing: 0, of: entries([1])) == nil)
    #expect(CleanPlan(freeing: 5, of: []) == nil)
    let plan = CleanPlan(freeing: 250, of: entries([5, 1, 3, 3, 9]))
    #expect(plan?.cutoff == UnixTime(seconds: 3))
    #expect(plan?.bytesAtCutoff == 150)
    let all = CleanPlan(freeing: 10_000, of: entries([5, 1]))
    #expect(all?.cutoff == UnixTime(seconds: 5))
  }

  @Test func `what is larger than the limit is not kept and counted`() async throws {
    let tier = try open(limit: 1 << 20)
    tier.store(Sample.variant(1, Sample.bytes(100)))
    #expect(await tier.quiet())
    tier.store(Sample.variant(1, Sample.bytes(2 << 20)))
    #expect(await tier.quiet())
    // Not even what was there before: it is not what was stored last.
    #expect(await tier.variant(for: Sample.variantKey(1)) == nil)
    #expect(tier.figures.failures == 1)
    await tier.shutDown(within: .seconds(10))
  }

  @Test func `above the queue's limit a store is dropped, counted and not readable`() async throws {
    let tier = try open(limit: 64 << 20) { $0.writeQueueLimit = 1_000_000 }
    #expect(await tier.ready())
    tier.store(Sample.variant(1, Sample.bytes(100)))
    #expect(await tier.quiet())
    tier.store(Sample.variant(1, Sample.bytes(2_000_000)))
    #expect(await tier.variant(for: Sample.variantKey(1)) == nil)
    #expect(tier.figures.failures == 1)
    #expect(await tier.quiet())
    tier.store(Sample.variant(1, Sample.bytes(500)))
    #expect(await tier.quiet())
    #expect(await tier.variant(for: Sample.variantKey(1))?.body.count == 500)
    await tier.shutDown(within: .seconds(10))
  }

  @Test func `a folder deleted while running is made anew, and the account follows`() async throws {
    let tier = try open(limit: 64 << 20)
    for number in 0..<50 { tier.store(Sample.variant(number, Sample.bytes(3_000))) }
    #expect(await tier.quiet())
    TemporaryFolder.remove(cache)
    #expect(await tier.variant(for: Sample.variantKey(1)) == nil)
    tier.store(Sample.variant(1, Sample.bytes(3_000)))
    #expect(await tier.quiet())
    #expect(await tier.variant(for: Sample.variantKey(1)) != nil)
    #expect(await eventually { tier.figures.entries == 1 })
    #expect(
      await eventually { tier.figures.bytes == TemporaryFolder.diskUsage(of: cache) })
    #expect(throws: DiskTierError.inUse(path: cache)) { _ = try open(limit: 1 << 20) }
    await tier.shutDown(within: .seconds(10))
  }

  @Test(arguments: ["tmp", "v", "s"])
  func `a part of the folder deleted while running is made anew`(part: String) async throws {
    let tier = try open(limit: 64 << 20)
    for number in 0..<50 { tier.store(Sample.variant(number, Sample.bytes(3_000))) }
    #expect(await tier.quiet())
    TemporaryFolder.remove(cache + "/" + part)
    for number in 0..<50 {
      tier.store(Sample.variant(number, Sample.bytes(2_000)))
      tier.store(try Sample.source(number, Sample.bytes(2_000)))
    }
    #expect(await tier.quiet())
    #expect(await eventually { tier.figures.entries == 100 })
    #expect(await eventually { tier.figures.bytes == TemporaryFolder.diskUsage(of: cache) })
    #expect(tier.figures.failures == 0)
    await tier.shutDown(within: .seconds(10))
  }

  @Test func `a folder that cannot be written to is survived, logged once, and used again`()
    async throws
  {
    // Given a tier whose folder turns into a file.
    let logFile = folder.path + "/log"
    let descriptor = Glibc.open(logFile, O_RDWR | O_CREAT, 0o600)
    defer { close(descriptor) }
    let tier = try DiskTier(
      Sample.configuration(folder), log: Log(level: .info, descriptor: descriptor))
    #expect(await tier.ready())
    TemporaryFolder.remove(cache)
    close(creat(cache, 0o600))
    // When entries are stored, then they are not kept, and one line says so.
    for number in 0..<5 {
      tier.store(Sample.variant(number, Sample.bytes(100)))
      #expect(await tier.quiet())
      #expect(await tier.variant(for: Sample.variantKey(number)) == nil)
    }
    #expect(tier.figures.failures >= 5)
    // When it can be used again, then it is.
    unlink(cache)
    tier.store(Sample.variant(1, Sample.bytes(100)))
    #expect(await tier.quiet())
    #expect(await tier.variant(for: Sample.variantKey(1)) != nil)
    await tier.shutDown(within: .seconds(10))
    let text = String(decoding: try #require(FileRegion(logFile)).bytes, as: UTF8.self)
    #expect(text.split(separator: "\n").count { $0.contains("cannot write to") } == 1)
    #expect(text.contains("can write to the cache folder again"))
  }

  @Test func `a file that somebody deleted is a miss and no longer counts`() async throws {
    let tier = try open(limit: 64 << 20)
    tier.store(Sample.variant(1, Sample.bytes(100)))
    #expect(await tier.quiet())
    unlink(tier.path(of: Sample.variantKey(1)))
    #expect(await tier.variant(for: Sample.variantKey(1)) == nil)
    #expect(tier.figures.entries == 0)
    #expect(tier.figures.bytes == TemporaryFolder.diskUsage(of: cache))
    await tier.shutDown(within: .seconds(10))
  }

  @Test func `what cannot be removed is a miss all the same, and goes with a later clean`()
    async throws
  {
    // Given an entry in whose place is a folder, which no unlink removes.
    let tier = try open(limit: 64 << 20)
    tier.store(Sample.variant(1, Sample.bytes(100)))
    #expect(await tier.quiet())
    let path = tier.path(of: Sample.variantKey(1))
    unlink(path)
    mkdir(path, 0o700)
    // When it is removed, then it is not found, and still counts.
    await tier.remove(Sample.variantKey(1))
    #expect(await tier.variant(for: Sample.variantKey(1)) == nil)
    #expect(tier.figures.entries == 1)
    #expect(tier.figures.failures == 1)
    // When it can be removed, then a clean does it.
    rmdir(path)
    await tier.clean()
    #expect(tier.figures.entries == 0)
    #expect(tier.figures.bytes == TemporaryFolder.diskUsage(of: cache))
    await tier.shutDown(within: .seconds(10))
  }

  @Test func `a disk that does not answer is a miss after a while`() async {
    let reads = PendingReads(timeout: .milliseconds(20))
    let never = Lock<PendingReads.Read?>(nil)
    let entry = await reads.wait { read in never.withLock { $0 = read } }
    #expect(entry == nil)
    never.withLock { $0 }?.finish(nil)
    reads.end()
    #expect(await reads.wait { _ in Issue.record("started after the end") } == nil)
  }
}
