// CoreReserveTests: the cores that workers leave to busy event loops.

import Core
import Glibc
import TestSupport
import Testing

@testable import ImagingPool

@Suite(.onOwnThreads, .serialized, .timeLimit(.minutes(1))) struct CoreReserveTests {
  @Test(arguments: [
    (cores: 2, used: 0.19, count: 0), (2, 0.2, 1), (2, 2, 1), (3, 1, 1), (4, 0.5, 1), (4, 1, 2),
    (4, 4, 2), (64, 0.2, 1), (64, 6.4, 10), (64, 64, 32),
  ]) func `it is one and a half times what loops use, at most half`(
    cores: Int, used: Double, count: Int
  ) throws {
    let subject = try ReserveSubject(cores: cores)
    #expect(subject.use(used, for: CoreReserve.pause) == count)
    #expect(subject.reserve.share() == .init(cores: Cores(count..<cores), reserved: count))
  }

  @Test func `it grows at once, and shrinks after half a second`() throws {
    let subject = try ReserveSubject(cores: 8)
    #expect(subject.use(0.5, for: .milliseconds(10)) == 1)
    #expect(subject.use(2, for: .milliseconds(10)) == 3)
    #expect(subject.use(0.5, for: .milliseconds(490)) == 3)
    #expect(subject.use(0.5, for: .milliseconds(30)) == 1)
    // Less than it takes to begin one keeps it.
    #expect(subject.use(0.15, for: .seconds(2)) == 1)
    #expect(subject.use(0.05, for: .milliseconds(490)) == 1)
    // A busy moment begins the half second again.
    #expect(subject.use(1, for: .milliseconds(10)) == 2)
    #expect(subject.use(0, for: .milliseconds(490)) == 2)
    #expect(subject.use(0, for: .milliseconds(30)) == 0)
  }

  @Test func `after a time without jobs, the use since then decides`() throws {
    let subject = try ReserveSubject(cores: 4)
    #expect(subject.use(1, for: .milliseconds(10)) == 2)
    #expect(subject.useUnseen(0.01, for: .seconds(60)) == 0)
    #expect(subject.useUnseen(0.5, for: .seconds(60)) == 1)
  }

  @Test func `it is measured once in a while, and never runs backwards`() throws {
    let looks = Lock(0)
    let start = ContinuousClock.now
    let loops = EventLoops(
      time: {
        looks.withLock { looks in
          looks += 1
          // Loops that ended take their time with them.
          return .seconds(10 - looks)
        }
      }, confine: { _ in })
    let reserve = try CoreReserve(
      of: { () throws(SystemError) in Cores(0..<4) }, for: loops, now: start)
    for millisecond in 0..<9 {
      _ = reserve.share(now: start + .milliseconds(millisecond))
    }
    #expect(looks.withLock { $0 } == 1)
    #expect(reserve.share(now: start + .milliseconds(10)).reserved == 0)
    #expect(looks.withLock { $0 } == 2)
  }

  @Test func `cores that an operator gives or takes count within a second`() throws {
    let subject = try ReserveSubject(cores: 8)
    #expect(subject.use(4, for: .milliseconds(10)) == 4)
    // When
    subject.count.withLock { $0 = 4 }
    // Then
    #expect(subject.use(4, for: .seconds(1)) == 2)
    #expect(subject.reserve.share().cores == Cores(2..<4))
    subject.count.withLock { $0 = 1 }
    #expect(subject.use(4, for: .seconds(1)) == 0)
    subject.count.withLock { $0 = 16 }
    #expect(subject.use(4, for: .seconds(1)) == 6)
  }

  @Test func `after a failure there is no reserve for a minute, and it is news once`() throws {
    let subject = try ReserveSubject(cores: 4)
    #expect(subject.use(2, for: .milliseconds(10)) == 2)
    // When
    #expect(subject.fail())
    // Then
    #expect(!subject.fail())
    #expect(subject.use(2, for: .seconds(59)) == 0)
    #expect(subject.use(2, for: .seconds(2)) == 2)
  }

  /// The time of loops that use far more than the time between two measurements.
  private static func time(whileBusy isBusy: Lock<Bool>) -> @Sendable () -> Duration {
    let time = Lock(Duration.zero)
    return {
      time.withLock { time in
        if isBusy.withLock({ $0 }) { time += .seconds(1_000) }
        return time
      }
    }
  }

  private static let hasCores = (try? Cores.allowed().numbers.count > 1) ?? false

  @Test(.enabled(if: hasCores)) func `workers leave the cores in the middle of a job and return`()
    async throws
  {
    // Given a worker that is stopped with a job
    let all = try Cores.allowed()
    let isBusy = Lock(false)
    let stopped = Lock<pid_t?>(nil)
    var configuration = PoolSupport.configuration()
    configuration.willSend = { pid in
      stopped.withLock { stopped in
        guard stopped == nil else { return }
        kill(pid, SIGSTOP)
        stopped = pid
      }
    }
    let pool = ImagerPool(configuration: configuration, log: .silent)
    pool.reserveCores(loopTime: Self.time(whileBusy: isBusy), confineLoops: { _ in })
    try pool.start()
    let job = try PoolSupport.job()
    async let result = pool.process(job)
    try await eventually("the worker has the job") { stopped.withLock { $0 } != nil }
    let pid = try #require(stopped.withLock { $0 })
    // When
    isBusy.withLock { $0 = true }
    try await eventually("it is confined") {
      try Cores.allowed(for: pid).numbers == Array(all.numbers.suffix((all.numbers.count + 1) / 2))
    }
    #expect(pool.figures.reservedCores == all.numbers.count / 2)
    isBusy.withLock { $0 = false }
    // Then
    try await eventually("it is free") { try Cores.allowed(for: pid) == all }
    #expect(pool.figures.reservedCores == 0)
    kill(pid, SIGCONT)
    _ = try await result
    await pool.shutDown(within: .zero)
  }

  @Test(.enabled(if: hasCores)) func `no more jobs run than workers have cores`() async throws {
    // Given busy loops, and workers that are stopped with their jobs
    let count = try Cores.allowed().numbers.count
    let width = count - count / 2
    let isBusy = Lock(true)
    let stopped = Lock<[pid_t]>([])
    var configuration = PoolSupport.configuration(workers: count)
    configuration.willSend = { pid in
      kill(pid, SIGSTOP)
      stopped.withLock { $0.append(pid) }
    }
    let pool = ImagerPool(configuration: configuration, log: .silent)
    pool.reserveCores(loopTime: Self.time(whileBusy: isBusy), confineLoops: { _ in })
    try pool.start()
    try await withThrowingTaskGroup(of: Void.self) { group in
      func add() throws {
        let job = try PoolSupport.job()
        group.addTask { _ = try await pool.process(job) }
      }
      // One at a time: the first one measures.
      for number in 1...width {
        try add()
        try await eventually("it is at work") { stopped.withLock { $0.count } == number }
        try await eventually("cores are reserved") { pool.figures.reservedCores == count / 2 }
      }
      // When
      try add()
      // Then
      try await eventually("it waits") { pool.figures.waiting == 1 }
      #expect(pool.figures.running == width)
      // When
      isBusy.withLock { $0 = false }
      // Then
      try await eventually("it is at work, too") { stopped.withLock { $0.count } == width + 1 }
      for pid in stopped.withLock({ $0 }) { kill(pid, SIGCONT) }
      try await group.waitForAll()
    }
    await pool.shutDown(within: .zero)
  }
}
