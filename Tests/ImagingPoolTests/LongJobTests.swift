// LongJobTests: jobs that take long give way to those that are quick.

import Core
import Glibc
import ImagingPool
import TestSupport
import Testing

@Suite(.onOwnThreads, .serialized, .timeLimit(.minutes(2))) struct LongJobTests {
  private static func job(_ bytes: [UInt8]) throws -> ImageJob {
    var transform = Transform()
    transform.width = 8
    return ImageJob(file: try .sealed(bytes), transform: transform, density: 1)
  }

  @Test func `a quick job runs before long jobs that arrived earlier`() async throws {
    // Given: a worker that stops before its first job, so that five long and a quick one wait
    let hasStopped = Lock(false)
    let long = TestImages.blackPNG(width: 2_000, height: 1_500, isDeep: true)
    var configuration = PoolSupport.configuration()
    configuration.limits.maximumQuickBytes = 16 << 20
    configuration.willSend = { pid in
      let isFirst = hasStopped.withLock { hasStopped in
        defer { hasStopped = true }
        return !hasStopped
      }
      if isFirst { kill(pid, SIGSTOP) }
    }
    let order = Lock<[String]>([])
    try await PoolSupport.withPool(configuration) { pool in
      try await eventually("an idle worker") { pool.idleWorkers == 1 }
      try await withThrowingTaskGroup(of: Void.self) { group in
        func submit(_ name: String, job: ImageJob) {
          group.addTask {
            let image = try await pool.process(job)
            #expect(image.rendered?.format == .png || image.rendered?.format == .jpeg)
            order.withLock { $0.append(name) }
          }
        }
        submit("first", job: try PoolSupport.job())
        try await eventually("it is with the worker") { pool.busyPID != nil }
        for count in 1...5 {
          submit("long", job: try Self.job(long))
          try await eventually("it waits") { pool.figures.waiting == count }
        }
        submit("quick", job: try PoolSupport.job())
        try await eventually("all wait") { pool.figures.waiting == 6 }
        // When
        kill(try #require(pool.busyPID), SIGCONT)
        try await group.waitForAll()
      }
      #expect(pool.figures.workersLost == 0 && pool.figures.succeeded == 7)
    }
    // Then: the tasks of the first two are resumed one after the other, and continue in any order
    let ended = order.withLock { $0 }
    #expect(ended.prefix(2).sorted() == ["first", "quick"] && ended.count == 7)
  }

  @Test func `a job without room for its memory waits for another's`() async throws {
    // Given: memory for one of two jobs, and a worker that stops when it may begin the first
    var configuration = PoolSupport.configuration(workers: 4)
    configuration.limits.maximumQuickBytes = 1 << 20
    configuration.expensiveJobMemory = 10 << 20
    let sent = Lock(0)
    configuration.willSend = { pid in
      let count = sent.withLock {
        $0 += 1
        return $0
      }
      if count == 2 { kill(pid, SIGSTOP) }
    }
    try await PoolSupport.withPool(configuration) { pool in
      try await eventually("idle workers") { pool.idleWorkers == 4 }
      async let first = pool.process(PoolSupport.job())
      try await eventually("the first has memory") { pool.memoryFigures.bytes > 8 << 20 }
      try await eventually("it is with a worker") { sent.withLock { $0 } == 2 }
      let busy = try #require(pool.busyPID)
      // When
      async let second = pool.process(PoolSupport.job())
      try await eventually("the second waits for memory") {
        pool.memoryFigures.refused == 1 && pool.figures.waiting == 1
      }
      // Then: the other workers have no job
      #expect(pool.figures.running == 1)
      kill(busy, SIGCONT)
      _ = try await (first, second)
      #expect(pool.figures.underestimated == 0 && pool.figures.workersLost == 0)
      #expect(pool.memoryFigures.bytes == 0)
      #expect(pool.memoryFigures.peak < 10 << 20)
    }
  }

  @Test
  func `a pool that stops still runs expensive jobs as memory allows, and ends with the last`()
    async throws
  {
    // Given: memory for one of two jobs, the second waits for the first, whose worker is stopped
    var configuration = PoolSupport.configuration(workers: 4)
    configuration.limits.maximumQuickBytes = 1 << 20
    configuration.expensiveJobMemory = 10 << 20
    let sent = Lock(0)
    configuration.willSend = { pid in
      let count = sent.withLock {
        $0 += 1
        return $0
      }
      if count == 2 { kill(pid, SIGSTOP) }
    }
    let pool = ImagerPool(configuration: configuration, log: .silent)
    try pool.start()
    try await eventually("idle workers") { pool.idleWorkers == 4 }
    async let first = pool.process(PoolSupport.job())
    try await eventually("it is with a worker") { sent.withLock { $0 } == 2 }
    let busy = try #require(pool.busyPID)
    async let second = pool.process(PoolSupport.job())
    try await eventually("the second waits") { pool.figures.waiting == 1 }
    // When
    let start = ContinuousClock.now
    async let end: Void = pool.shutDown(within: .seconds(60))
    // Then
    try await Task.sleep(for: .milliseconds(200))
    #expect(pool.figures.waiting == 1 && pool.figures.running == 1)
    kill(busy, SIGCONT)
    _ = try await (first, second)
    await end
    #expect(start.duration(to: .now) < .seconds(30))
    #expect(pool.memoryFigures.peak < 10 << 20)
  }

  @Test func `a job estimated above the limit is refused before decoding`()
    async throws
  {
    var configuration = PoolSupport.configuration()
    configuration.limits.maximumSeconds = 1
    let long = TestImages.blackPNG(width: 8_000, height: 6_000, isDeep: true)
    try await PoolSupport.withPool(configuration) { pool in
      await #expect {
        try await pool.process(Self.job(long))
      } throws: {
        ($0 as? ImageError)?.code == "too_costly"
      }
      _ = try await pool.process(Self.job(TestImages.blackPNG(width: 3_000, height: 2_000)))
      #expect(pool.figures.workersLost == 0)
    }
  }

  @Test(.disabled(if: TestBuild.isThreadSanitized, "a sanitizer's shadow memory has no bound"))
  func `an interlaced PNG that exceeds the memory is refused, and its worker continues`()
    async throws
  {
    var configuration = PoolSupport.configuration()
    configuration.maximumWorkerMemory = 96 << 20
    try await PoolSupport.withPool(configuration) { pool in
      let pids = pool.pids
      let size = (width: 12_000, height: 10_000)
      let interlaced = TestImages.blackPNG(
        width: size.width, height: size.height, isInterlaced: true)
      await #expect {
        try await pool.process(Self.job(interlaced))
      } throws: {
        guard case .ofVariant(.tooCostly)? = $0 as? ImageError else { return false }
        return true
      }
      #expect(pool.figures.workersRetired == 0)
      // Row by row it is no matter.
      let plain = TestImages.blackPNG(width: size.width, height: size.height)
      let image = try await pool.process(Self.job(plain))
      #expect(image.rendered?.size.width == 8)
      #expect(pool.pids == pids && pool.figures.workersLost == 0)
      // And a worker that had a job is replaced, as it may have less memory left than a new one.
      await #expect(throws: ImageError.self) { try await pool.process(Self.job(interlaced)) }
      #expect(pool.pids != pids && pool.figures.workersRetired == 1)
      #expect(pool.figures.workersLost == 0)
    }
  }
}
