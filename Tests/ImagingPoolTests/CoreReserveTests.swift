// CoreReserveTests: the cores that workers leave to busy event loops.

import Glibc
import Model
import Platform
import TestSupport
import Testing

@testable import ImagingPool

@Suite(.onOwnThreads, .serialized, .timeLimit(.minutes(1))) struct CoreReserveTests {
  /// A reserve of cores 0 to `count - 1` whose loops use what the test says.
  private final class Subject: Sendable {
    private let time = Lock(Duration.zero)
    private let now: Lock<ContinuousClock.Instant>
    let reserve: CoreReserve
    /// The number of the server's cores.
    let count: Lock<Int>

    init(cores count: Int) throws {
      let start = ContinuousClock.now
      now = Lock(start)
      self.count = Lock(count)
      reserve = try CoreReserve(
        of: { [count = self.count] () throws(SystemError) in Cores(0..<count.withLock { $0 }) },
        now: start
      ) { [time] in time.withLock { $0 } }
    }

    /// Lets the loops use this many cores for some time. Returns the number of reserved cores.
    func use(_ cores: Double, for duration: Duration) -> Int {
      var left = duration
      while left > .zero {
        let step = min(left, CoreReserve.pause)
        time.withLock { $0 += step * cores }
        let instant = now.withLock { now in
          now += step
          return now
        }
        _ = reserve.share(now: instant)
        left -= step
      }
      return reserve.count
    }

    /// A worker could not be moved. Returns whether that is news.
    func fail() -> Bool { reserve.fail(now: now.withLock { $0 }) }

    /// Lets the loops use this many cores, and measures at the end alone.
    func useUnseen(_ cores: Double, for duration: Duration) -> Int {
      time.withLock { $0 += duration * cores }
      let instant = now.withLock { now in
        now += duration
        return now
      }
      _ = reserve.share(now: instant)
      return reserve.count
    }
  }

  @Test(arguments: [
    (cores: 2, used: 0.19, count: 0), (2, 0.2, 1), (2, 2, 1), (3, 1, 1), (4, 0.5, 1), (4, 1, 2),
    (4, 4, 2), (64, 0.2, 1), (64, 6.4, 10), (64, 64, 32),
  ]) func `it is one and a half times what loops use, at most half`(
    cores: Int, used: Double, count: Int
  ) throws {
    let subject = try Subject(cores: cores)
    #expect(subject.use(used, for: CoreReserve.pause) == count)
    #expect(subject.reserve.share() == .init(cores: Cores(count..<cores), reserved: count))
  }

  @Test func `it grows at once, and shrinks after half a second`() throws {
    let subject = try Subject(cores: 8)
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
    let subject = try Subject(cores: 4)
    #expect(subject.use(1, for: .milliseconds(10)) == 2)
    #expect(subject.useUnseen(0.01, for: .seconds(60)) == 0)
    #expect(subject.useUnseen(0.5, for: .seconds(60)) == 1)
  }

  @Test func `it is measured once in a while, and never runs backwards`() throws {
    let looks = Lock(0)
    let start = ContinuousClock.now
    let reserve = try CoreReserve(
      of: { () throws(SystemError) in Cores(0..<4) }, now: start
    ) {
      looks.withLock { looks in
        looks += 1
        // Loops that ended take their time with them.
        return .seconds(10 - looks)
      }
    }
    for millisecond in 0..<9 {
      _ = reserve.share(now: start + .milliseconds(millisecond))
    }
    #expect(looks.withLock { $0 } == 1)
    #expect(reserve.share(now: start + .milliseconds(10)).reserved == 0)
    #expect(looks.withLock { $0 } == 2)
  }

  @Test func `cores that an operator gives or takes count within a second`() throws {
    let subject = try Subject(cores: 8)
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
    let subject = try Subject(cores: 4)
    #expect(subject.use(2, for: .milliseconds(10)) == 2)
    // When
    #expect(subject.fail())
    // Then
    #expect(!subject.fail())
    #expect(subject.use(2, for: .seconds(59)) == 0)
    #expect(subject.use(2, for: .seconds(2)) == 2)
  }

  private static let hasCores = (try? Cores.allowed().numbers.count > 1) ?? false

  @Test(.enabled(if: hasCores)) func `workers leave the cores in the middle of a job and return`()
    async throws
  {
    // Given a worker that is stopped with a job
    let all = try Cores.allowed()
    let isBusy = Lock(false)
    let time = Lock(Duration.zero)
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
    pool.reserveCores {
      // Far more than the time between two measurements
      time.withLock { time in
        if isBusy.withLock({ $0 }) { time += .seconds(1_000) }
        return time
      }
    }
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
    let time = Lock(Duration.zero)
    let stopped = Lock<[pid_t]>([])
    var configuration = PoolSupport.configuration(workers: count)
    configuration.willSend = { pid in
      kill(pid, SIGSTOP)
      stopped.withLock { $0.append(pid) }
    }
    let pool = ImagerPool(configuration: configuration, log: .silent)
    pool.reserveCores {
      time.withLock { time in
        if isBusy.withLock({ $0 }) { time += .seconds(1_000) }
        return time
      }
    }
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

  @Test func `without the setting, workers have all cores`() async throws {
    var configuration = PoolSupport.configuration()
    configuration.reservesCores = false
    let pool = ImagerPool(configuration: configuration, log: .silent)
    pool.reserveCores {
      Issue.record("it is measured")
      return .zero
    }
    try pool.start()
    _ = try await pool.process(PoolSupport.job())
    #expect(pool.figures.reservedCores == 0)
    await pool.shutDown(within: .zero)
  }
}
