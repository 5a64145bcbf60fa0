// DiskExpiryTests: the times from which an entry's age counts, across restarts and clock changes.

import Core
import Glibc
import TestSupport
import Testing

@testable import Caching

@Suite(.onOwnThreads) final class DiskExpiryTests: DiskFolderTests {
  typealias ExpireType = DiskSettings.ExpireType

  private func openTier(_ type: ExpireType = .access) throws -> DiskTier {
    try open {
      $0.maximumAge = 10_000
      $0.expireBy = type
    }
  }

  func modification(_ path: String) -> timespec {
    var status = stat()
    #expect(lstat(path, &status) == 0)
    return status.st_mtim
  }

  @Test(
    arguments: [
      (ExpireType.access, [1, 2, 4]), (.modification, [2, 4]), (.creation, [4]),
    ], [false, true])
  func `age counts from the last use, the last write or the first write, as configured`(
    expected: (ExpireType, [Int]), isRestarted: Bool
  ) async throws {
    // Given an entry used later, one written again later, one left alone, and one stored later.
    var tier = try openTier(expected.0)
    for number in 1...3 { tier.store(try Sample.source(number, bytes: Sample.bytes(100))) }
    #expect(await tier.quiet())
    clock.advance(by: 6_000)
    #expect(await tier.source(for: Sample.sourceKey(1)) != nil)
    tier.store(try Sample.source(2, bytes: Sample.bytes(200)))
    tier.store(try Sample.source(4, bytes: Sample.bytes(100)))
    #expect(await tier.quiet())
    if isRestarted {
      await tier.shutDown(within: .seconds(10))
      tier = try openTier(expected.0)
      // After the first clean of the new run.
      await tier.clean()
    }
    // When the first time is too old and the later one is not.
    clock.advance(by: 4_400)
    let report = await tier.clean()
    // Then the expired entries are gone, and the report has their number.
    #expect(report.expired == 4 - expected.1.count)
    #expect(report.evicted == 0)
    for number in 1...4 {
      let isKept = access(tier.path(of: Sample.sourceKey(number)), F_OK) == 0
      #expect(isKept == expected.1.contains(number), "\(number)")
    }
    #expect(tier.figures.expirations == report.expired)
  }

  @Test func `a read does not change a file's access time`() async throws {
    let tier = try openTier()
    await tier.keep(Sample.variant(1, bytes: Sample.bytes(100)))
    clock.advance(by: 1)
    // The system's clock differs from the test's, and would set another year.
    #expect(await tier.variant(for: Sample.variantKey(1)) != nil)
    var status = stat()
    #expect(lstat(tier.path(of: Sample.variantKey(1)), &status) == 0)
    #expect(status.st_atim.tv_sec == clock.now.seconds - 1)
  }

  @Test func `the nanoseconds of a file's modification time record the age of its key`()
    async throws
  {
    var tier = try openTier(.creation)
    let key = Sample.variantKey(1)
    await tier.keep(Sample.variant(1, bytes: Sample.bytes(100)))
    #expect(modification(tier.path(of: key)).tv_nsec == 0)
    for age in [1_000, 5_000] {
      await tier.shutDown(within: .seconds(10))
      clock.advance(by: age == 1_000 ? 1_000 : 4_000)
      tier = try openTier(.creation)
      await tier.keep(Sample.variant(1, bytes: Sample.bytes(200)))
      #expect(modification(tier.path(of: key)).tv_nsec == age)
      #expect(modification(tier.path(of: key)).tv_sec == clock.now.seconds)
    }
    // A removed entry has no history, so the next one is new.
    await tier.remove(key)
    await tier.keep(Sample.variant(1, bytes: Sample.bytes(100)))
    #expect(modification(tier.path(of: key)).tv_nsec == 0)
  }

  @Test func `file times are read back unchanged, with at most 31 years between them`() throws {
    try folder.write("file", bytes: [1])
    let path = folder.path + "/file"
    let now = clock.now
    for age in [0, 1, 86_400, 999_999_999, 2_000_000_000] {
      let times = EntryTimes(
        created: UnixTime(seconds: now.seconds - age), stored: now, access: now)
      let descriptor = Glibc.open(path, O_WRONLY)
      defer { close(descriptor) }
      try times.write(to: descriptor)
      var status = stat()
      #expect(lstat(path, &status) == 0)
      let read = EntryTimes(of: status)
      #expect(read.stored == now)
      #expect(read.access == now)
      #expect(now.seconds - read.created.seconds == min(age, 999_999_999))
    }
  }

  @Test func `files with future times count as new at the start`() async throws {
    let first = try openTier()
    await first.keep(Sample.variant(1, bytes: Sample.bytes(100)))
    await first.shutDown(within: .seconds(10))
    clock.advance(by: -100_000)
    let second = try openTier()
    #expect(await second.quiet())
    #expect(await second.variant(for: Sample.variantKey(1)) != nil)
    clock.advance(by: 10_001)
    #expect(await second.clean().expired == 1)
  }
}
