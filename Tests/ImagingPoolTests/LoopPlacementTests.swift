// LoopPlacementTests: event loops keep to the reserved cores while jobs run on all others.

import Core
import Glibc
import TestSupport
import Testing

@testable import ImagingPool

@Suite(.onOwnThreads, .serialized, .timeLimit(.minutes(1))) struct LoopPlacementTests {
  @Test func `loops keep to their cores while jobs run on all others`() throws {
    let subject = try ReserveSubject(cores: 8)
    #expect(try subject.place(running: 8) == nil, "nothing is reserved")
    #expect(subject.use(1, for: .milliseconds(10)) == 2)
    #expect(try subject.place(running: 5) == nil)
    #expect(try subject.place(running: 6) == Cores(0..<2))
    #expect(try subject.place(running: 8) == nil, "they are there")
    // When jobs end and others follow
    #expect(subject.use(1, for: .milliseconds(10)) == 2)
    #expect(try subject.place(running: 5) == nil)
    #expect(subject.use(1, for: .milliseconds(10)) == 2)
    #expect(try subject.place(running: 6) == nil)
    // When none follow
    #expect(try subject.place(running: 5) == nil)
    #expect(subject.use(1, for: .milliseconds(20)) == 2)
    #expect(try subject.place(running: 5) == Cores(0..<8))
    #expect(try subject.place(running: 6) == Cores(0..<2))
    // When the last one ends
    #expect(try subject.place(running: 0) == Cores(0..<8))
    // When nothing is reserved any more
    #expect(try subject.place(running: 8) == Cores(0..<2))
    #expect(subject.use(0, for: .seconds(1)) == 0)
    #expect(try subject.place(running: 8) == Cores(0..<8))
  }

  @Test(arguments: [(2, 1), (8, 4), (9, 4)])
  func `loops that need more than half of the cores have all`(cores: Int, most: Int) throws {
    let subject = try ReserveSubject(cores: cores)
    let use = { try #require(subject.use($0 * Double(most), for: $1) == most) }
    try use(0.9, .milliseconds(10))
    #expect(try subject.place(running: cores) == Cores(0..<most))
    // When
    try use(1, .milliseconds(10))
    #expect(try subject.place(running: cores) == nil, "one measurement may be wrong")
    try use(1, .milliseconds(10))
    // Then
    #expect(try subject.place(running: cores) == Cores(0..<cores))
    try use(0.9, .seconds(3))
    #expect(try subject.place(running: cores) == nil, "it would be too few again")
    try use(0.8, .milliseconds(490))
    #expect(try subject.place(running: cores) == nil)
    try use(0.8, .milliseconds(20))
    #expect(try subject.place(running: cores) == Cores(0..<most))
  }

  @Test func `loops that use all reserved cores have all cores while more are reserved`() throws {
    let subject = try ReserveSubject(cores: 64)
    #expect(subject.use(0.5, for: .milliseconds(10)) == 1)
    #expect(try subject.place(running: 64) == Cores(0..<1))
    // When they use all that they have
    #expect(subject.use(1, for: .milliseconds(10)) == 2)
    #expect(try subject.place(running: 64) == Cores(0..<2))
    #expect(subject.use(2, for: .milliseconds(10)) == 3)
    // Then
    #expect(try subject.place(running: 64) == Cores(0..<64))
    #expect(subject.use(12, for: .milliseconds(300)) == 18)
    #expect(try subject.place(running: 64) == nil)
    #expect(subject.use(12, for: .milliseconds(200)) == 18)
    #expect(try subject.place(running: 64) == Cores(0..<18))
  }

  @Test func `loops that could not be moved are moved again`() throws {
    let subject = try ReserveSubject(cores: 4)
    #expect(subject.use(1, for: .milliseconds(10)) == 2)
    #expect(try subject.place(running: 4) == Cores(0..<2))
    // When
    subject.isStuck.withLock { $0 = true }
    #expect(throws: SystemError(EINVAL)) { try subject.place(running: 0) }
    #expect(subject.fail())
    #expect(throws: SystemError(EINVAL)) { try subject.place(running: 4) }
    subject.isStuck.withLock { $0 = false }
    // Then
    #expect(try subject.place(running: 4) == Cores(0..<4))
    #expect(try subject.place(running: 4) == nil)
    #expect(subject.use(1, for: .seconds(61)) == 2)
    #expect(try subject.place(running: 4) == Cores(0..<2))
  }

  @Test func `on one core, loops are never moved`() throws {
    let subject = try ReserveSubject(cores: 1)
    #expect(subject.use(1, for: .milliseconds(20)) == 0)
    #expect(try subject.place(running: 1) == nil)
    subject.count.withLock { $0 = 4 }
    #expect(subject.use(1, for: .seconds(1)) == 2)
    #expect(try subject.place(running: 4) == Cores(0..<2))
  }

  private static let hasCores = (try? Cores.allowed().numbers.count > 1) ?? false

  @Test(.enabled(if: hasCores)) func `loops are moved while jobs run, and freed after them`()
    async throws
  {
    // Given loops that use 0.3 of a core
    let all = try Cores.allowed()
    let moves = Lock<[Cores]>([])
    let began = ContinuousClock.now
    let stopped = Lock<[pid_t]>([])
    var configuration = PoolSupport.configuration(workers: all.numbers.count)
    configuration.willSend = { pid in
      kill(pid, SIGSTOP)
      stopped.withLock { $0.append(pid) }
    }
    let pool = ImagerPool(configuration: configuration, log: .silent)
    pool.reserveCores(
      loopTime: { began.duration(to: .now) * 3 / 10 },
      confineLoops: { cores throws(SystemError) in moves.withLock { $0.append(cores) } })
    try pool.start()
    try await withThrowingTaskGroup(of: Void.self) { group in
      // When jobs run on all cores but one, which is reserved
      for number in 1..<all.numbers.count {
        let job = try PoolSupport.job()
        group.addTask { _ = try await pool.process(job) }
        try await eventually("it is at work") { stopped.withLock { $0.count } == number }
      }
      // Then
      try await eventually("loops are moved") {
        moves.withLock { $0.last } == Cores(all.numbers.prefix(1))
      }
      for pid in stopped.withLock({ $0 }) { kill(pid, SIGCONT) }
      try await group.waitForAll()
    }
    try await eventually("they are free") { moves.withLock { $0.last } == all }
    await pool.shutDown(within: .zero)
  }
}
