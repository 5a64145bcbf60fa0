// DiskExpiryTests: the times from which an entry's age counts, across restarts and clock changes.

import Glibc
import Model
import Platform
import Telemetry
import TestSupport
import Testing

@testable import Caching

@Suite(.onOwnThreads) struct DiskExpiryTests {
  typealias ExpireType = DiskSettings.ExpireType

  let folder: TemporaryFolder
  let clock = ManualClock()

  init() throws { folder = try TemporaryFolder() }

  func open(
    _ type: ExpireType = .access, maximumAge: Int = 10_000, log: Log = .silent
  ) throws -> DiskTier {
    var configuration = Sample.configuration(folder)
    configuration.maximumAge = maximumAge
    configuration.expireBy = type
    return try DiskTier(configuration, log: log) { [clock] in clock.now }
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
    var tier = try open(expected.0)
    for number in 1...3 { tier.store(try Sample.source(number, bytes: Sample.bytes(100))) }
    #expect(await tier.quiet())
    clock.advance(by: 6_000)
    #expect(await tier.source(for: Sample.sourceKey(1)) != nil)
    tier.store(try Sample.source(2, bytes: Sample.bytes(200)))
    tier.store(try Sample.source(4, bytes: Sample.bytes(100)))
    #expect(await tier.quiet())
    if isRestarted {
      await tier.shutDown(within: .seconds(10))
      tier = try open(expected.0)
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
    await tier.shutDown(within: .seconds(10))
  }

  @Test func `a use too recent to be recorded in the file still delays expiry`()
    async throws
  {
    // Given a use in the same interval as the write, so that the file does not record it.
    let first = try open(maximumAge: 250)
    first.store(Sample.variant(1, bytes: Sample.bytes(100)))
    #expect(await first.quiet())
    clock.advance(by: 90)
    #expect(await first.variant(for: Sample.variantKey(1)) != nil)
    var status = stat()
    #expect(lstat(first.path(of: Sample.variantKey(1)), &status) == 0)
    #expect(status.st_atim.tv_sec == clock.now.seconds - 90)
    await first.shutDown(within: .seconds(10))
    // When a later run expires entries whose write is too old, but whose use may not be.
    clock.advance(by: 240)
    let second = try open(maximumAge: 250)
    #expect(await second.clean().expired == 0)
    #expect(await second.variant(for: Sample.variantKey(1)) != nil)
    await second.shutDown(within: .seconds(10))
  }

  @Test func `a read does not change a file's access time`() async throws {
    let tier = try open()
    tier.store(Sample.variant(1, bytes: Sample.bytes(100)))
    #expect(await tier.quiet())
    clock.advance(by: 1)
    // The system's clock differs from the test's, and would set another year.
    #expect(await tier.variant(for: Sample.variantKey(1)) != nil)
    var status = stat()
    #expect(lstat(tier.path(of: Sample.variantKey(1)), &status) == 0)
    #expect(status.st_atim.tv_sec == clock.now.seconds - 1)
    await tier.shutDown(within: .seconds(10))
  }

  @Test func `the nanoseconds of a file's modification time record the age of its key`()
    async throws
  {
    var tier = try open(.creation)
    let key = Sample.variantKey(1)
    tier.store(Sample.variant(1, bytes: Sample.bytes(100)))
    #expect(await tier.quiet())
    #expect(modification(tier.path(of: key)).tv_nsec == 0)
    for age in [1_000, 5_000] {
      await tier.shutDown(within: .seconds(10))
      clock.advance(by: age == 1_000 ? 1_000 : 4_000)
      tier = try open(.creation)
      tier.store(Sample.variant(1, bytes: Sample.bytes(200)))
      #expect(await tier.quiet())
      #expect(modification(tier.path(of: key)).tv_nsec == age)
      #expect(modification(tier.path(of: key)).tv_sec == clock.now.seconds)
    }
    // A removed entry has no history, so the next one is new.
    await tier.remove(key)
    tier.store(Sample.variant(1, bytes: Sample.bytes(100)))
    #expect(await tier.quiet())
    #expect(modification(tier.path(of: key)).tv_nsec == 0)
    await tier.shutDown(within: .seconds(10))
  }

  @Test func `file times are read back unchanged, with at most 31 years between them`() throws {
    try folder.write("file", bytes: [1])
    let path = folder.path + "/file"
    let now = clock.now
    for age in [0, 1, 86_400, 999_999_999, 2_000_000_000] {
      let times = EntryTimes(
        created: UnixTime(seconds: now.seconds - age), stored: now, access: now)
      times.correct(path)
      var status = stat()
      #expect(lstat(path, &status) == 0)
      let read = EntryTimes(of: status)
      #expect(read.stored == now)
      #expect(read.access == now)
      #expect(now.seconds - read.created.seconds == min(age, 999_999_999))
    }
  }

  @Test func `when the clock is set back, later times count as now in the index and the files`()
    async throws
  {
    let logFile = folder.path + "/log"
    let descriptor = Glibc.open(logFile, O_RDWR | O_CREAT, 0o600)
    defer { close(descriptor) }
    let tier = try open(.modification, log: Log(level: .info, descriptor: descriptor))
    for number in 1...3 { tier.store(Sample.variant(number, bytes: Sample.bytes(100))) }
    #expect(await tier.quiet())
    // When the clock is set back by a day, then the entries count as new.
    clock.advance(by: -86_400)
    await tier.clean()
    #expect(tier.figures.redated == 3)
    for number in 1...3 {
      let time = modification(tier.path(of: Sample.variantKey(number)))
      #expect(time.tv_sec == clock.now.seconds)
    }
    // Only once: their times are corrected, so they age again.
    await tier.clean()
    #expect(tier.figures.redated == 3)
    clock.advance(by: 10_001)
    #expect(await tier.clean().expired == 3)
    // A later change of the clock is another episode.
    tier.store(Sample.variant(4, bytes: Sample.bytes(100)))
    #expect(await tier.quiet())
    clock.advance(by: -3_600)
    await tier.clean()
    await tier.shutDown(within: .seconds(10))
    let text = String(decoding: try #require(FileRegion(logFile)).bytes, as: UTF8.self)
    #expect(text.split(separator: "\n").count { $0.contains("clock was set back") } == 2)
  }

  @Test func `files with future times are corrected at the start`() async throws {
    let first = try open()
    first.store(Sample.variant(1, bytes: Sample.bytes(100)))
    #expect(await first.quiet())
    await first.shutDown(within: .seconds(10))
    clock.advance(by: -100_000)
    let second = try open()
    try await eventually { second.figures.redated == 1 }
    #expect(await second.quiet())
    #expect(
      modification(second.path(of: Sample.variantKey(1))).tv_sec == clock.now.seconds)
    #expect(await second.variant(for: Sample.variantKey(1)) != nil)
    clock.advance(by: 10_001)
    #expect(await second.clean().expired == 1)
    await second.shutDown(within: .seconds(10))
  }

  @Test func `a clock set back by a minute has no effect`() async throws {
    let tier = try open()
    tier.store(Sample.variant(1, bytes: Sample.bytes(100)))
    #expect(await tier.quiet())
    let before = modification(tier.path(of: Sample.variantKey(1)))
    clock.advance(by: -60)
    await tier.clean()
    #expect(tier.figures.redated == 0)
    #expect(modification(tier.path(of: Sample.variantKey(1))).tv_sec == before.tv_sec)
    await tier.shutDown(within: .seconds(10))
  }
}
