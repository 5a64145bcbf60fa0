// PriorityTests: the order in which a real worker gets the queued jobs.

import Core
import Glibc
import ImagingPool
import TestSupport
import Testing

/// Serialized, because the tests start processes.
@Suite(.onOwnThreads, .serialized, .timeLimit(.minutes(1))) struct PriorityTests {
  @Test func `waiting jobs run by priority, in order of arrival within one`() async throws {
    try await OneWorker.with { queue in
      // Given: a job that takes long
      try await queue.run("long", at: TestPriority(.low))
      // When
      try await queue.wait("low 1", at: TestPriority(.low))
      try await queue.wait("low 2", at: TestPriority(.low))
      try await queue.wait("without", at: nil)
      try await queue.wait("normal", at: TestPriority(.normal))
      try await queue.wait("high", at: TestPriority(.high))
      // Then
      let order = try await queue.drain()
      #expect(order == ["long", "high", "without", "normal", "low 1", "low 2"])
    }
  }

  @Test func `a job raised while it waits runs before the others`() async throws {
    try await OneWorker.with { queue in
      // Given
      try await queue.run("long", at: nil)
      let second = TestPriority(.low)
      let third = TestPriority(.low)
      try await queue.wait("first", at: TestPriority(.low))
      try await queue.wait("second", at: second)
      try await queue.wait("third", at: third)
      try await queue.wait("normal", at: TestPriority(.normal))
      // When
      third.raise(to: .high)
      second.raise(to: .normal)
      third.raise(to: .normal)
      // Then: it keeps its place in the order of arrival, and no priority is lowered
      #expect(try await queue.drain() == ["long", "third", "second", "normal", "first"])
    }
  }

  @Test func `a raise during submission is not lost`() async throws {
    try await OneWorker.with { queue in
      try await queue.run("long", at: nil)
      try await queue.wait("first", at: TestPriority(.normal))
      try await queue.wait("second", at: TestPriority(.low, raisedWhileObserved: .high))
      #expect(try await queue.drain() == ["long", "second", "first"])
    }
  }

  @Test func `only waiting jobs observe raises`() async throws {
    try await OneWorker.with { queue in
      let running = TestPriority(.low)
      let waiting = TestPriority(.low)
      try await queue.run("running", at: running)
      try await queue.wait("waiting", at: waiting)
      #expect(running.observerCount == 0 && waiting.observerCount == 1)
      #expect(try await queue.drain() == ["running", "waiting"])
      // Then: a raise that comes too late has no effect
      waiting.raise(to: .high)
    }
  }
}

/// A pool whose only worker stops before each job until it may continue.
private final class OneWorker: Sendable {
  private let pool: ImagerPool
  private let tasks = Lock<[Task<Void, any Error>]>([])
  private let done = Lock<[String]>([])

  private init(_ pool: ImagerPool) { self.pool = pool }

  static func with(_ body: (OneWorker) async throws -> Void) async throws {
    var configuration = PoolSupport.configuration()
    configuration.willSend = { kill($0, SIGSTOP) }
    try await PoolSupport.withPool(configuration) { pool in
      try await eventually("an idle worker") { pool.idleWorkers == 1 }
      try await body(OneWorker(pool))
    }
  }

  /// Submits a job that the worker takes.
  func run(_ name: String, at priority: TestPriority?) async throws {
    try submit(name, at: priority)
    try await eventually("\(name) is with the worker") { pool.busyPID != nil }
  }

  /// Submits a job that is queued.
  func wait(_ name: String, at priority: TestPriority?) async throws {
    let waiting = pool.figures.waiting
    try submit(name, at: priority)
    try await eventually("\(name) waits") {
      // A job that is ordered has reported its priority to the queue.
      pool.figures.waiting == waiting + 1 && priority?.observerCount != 0
    }
  }

  /// Lets the worker perform one job after the other. Returns their order.
  func drain() async throws -> [String] {
    let tasks = tasks.withLock { $0 }
    for count in 1...tasks.count {
      try await eventually("a job is with the worker") { pool.busyPID != nil }
      kill(try #require(pool.busyPID), SIGCONT)
      try await eventually("it is done") { done.withLock { $0.count } == count }
    }
    for task in tasks { try await task.value }
    return done.withLock { $0 }
  }

  private func submit(_ name: String, at priority: TestPriority?) throws {
    let image = try PoolSupport.job()
    let job = ImageJob(
      file: image.file, transform: image.transform, density: 1, priority: priority)
    let task = Task { [pool, done] in
      _ = try await pool.process(job)
      done.withLock { $0.append(name) }
    }
    tasks.withLock { $0.append(task) }
  }
}
