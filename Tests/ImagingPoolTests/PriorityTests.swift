// PriorityTests: the order in which a real worker gets the queued jobs.

import Glibc
import ImagingPool
import Model
import Platform
import TestSupport
import Testing

/// Serialized, because the tests start processes.
@Suite(.onOwnThreads, .serialized, .timeLimit(.minutes(1))) struct PriorityTests {
  @Test func `what waits goes by priority, and first come, first served within one`() async throws {
    try await OneWorker.with { queue in
      // Given: a job that takes long
      try await queue.run("long", TestPriority(.low))
      // When
      try await queue.wait("low 1", TestPriority(.low))
      try await queue.wait("low 2", TestPriority(.low))
      try await queue.wait("without", nil)
      try await queue.wait("normal", TestPriority(.normal))
      try await queue.wait("high", TestPriority(.high))
      // Then
      let order = try await queue.drain()
      #expect(order == ["long", "high", "without", "normal", "low 1", "low 2"])
    }
  }

  @Test func `a job that is raised while it waits goes before the others`() async throws {
    try await OneWorker.with { queue in
      // Given
      try await queue.run("long", nil)
      let (second, third) = (TestPriority(.low), TestPriority(.low))
      try await queue.wait("first", TestPriority(.low))
      try await queue.wait("second", second)
      try await queue.wait("third", third)
      try await queue.wait("normal", TestPriority(.normal))
      // When
      third.raise(to: .high)
      second.raise(to: .normal)
      third.raise(to: .normal)
      // Then: it keeps its place in the order of arrival, and no priority is lowered
      #expect(try await queue.drain() == ["long", "third", "second", "normal", "first"])
    }
  }

  @Test func `a raise that comes while the job is handed in is not lost`() async throws {
    try await OneWorker.with { queue in
      try await queue.run("long", nil)
      try await queue.wait("first", TestPriority(.normal))
      try await queue.wait("second", TestPriority(.low, raisedWhileObserved: .high))
      #expect(try await queue.drain() == ["long", "second", "first"])
    }
  }

  @Test func `only a job that has to wait has its raises told`() async throws {
    try await OneWorker.with { queue in
      let (running, waiting) = (TestPriority(.low), TestPriority(.low))
      try await queue.run("running", running)
      try await queue.wait("waiting", waiting)
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
      try await PoolSupport.eventually("an idle worker") { pool.idleWorkers == 1 }
      try await body(OneWorker(pool))
    }
  }

  /// Submits a job that the worker takes.
  func run(_ name: String, _ priority: TestPriority?) async throws {
    try submit(name, priority)
    try await PoolSupport.eventually("\(name) is with the worker") { pool.busyPID != nil }
  }

  /// Submits a job that is queued.
  func wait(_ name: String, _ priority: TestPriority?) async throws {
    let waiting = pool.figures.waiting
    try submit(name, priority)
    try await PoolSupport.eventually("\(name) waits") {
      // A job that is ordered has reported its priority to the queue.
      pool.figures.waiting == waiting + 1 && priority?.observerCount != 0
    }
  }

  /// Lets the worker perform one job after the other. Returns their order.
  func drain() async throws -> [String] {
    let tasks = tasks.withLock { $0 }
    for count in 1...tasks.count {
      try await PoolSupport.eventually("a job is with the worker") { pool.busyPID != nil }
      kill(try #require(pool.busyPID), SIGCONT)
      try await PoolSupport.eventually("it is done") { done.withLock { $0.count } == count }
    }
    for task in tasks { try await task.value }
    return done.withLock { $0 }
  }

  private func submit(_ name: String, _ priority: TestPriority?) throws {
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

/// A priority that a test raises.
private final class TestPriority: WorkPriority {
  let waiters = 1
  private let state: Lock<(value: LoadPriority, observers: [@Sendable (LoadPriority) -> Void])>
  /// The priority to which another participant raises it before `observe` returns.
  private let raisedWhileObserved: LoadPriority?

  init(_ value: LoadPriority, raisedWhileObserved: LoadPriority? = nil) {
    state = Lock((value, []))
    self.raisedWhileObserved = raisedWhileObserved
  }

  var observerCount: Int { state.withLock { $0.observers.count } }

  func observe(_ observer: @escaping @Sendable (LoadPriority) -> Void) -> LoadPriority {
    if let raisedWhileObserved { observer(raisedWhileObserved) }
    return state.withLock { state in
      state.observers.append(observer)
      return state.value
    }
  }

  /// Also reports lower priorities, as raises that overtake each other would.
  func raise(to value: LoadPriority) {
    for observer in state.withLock({ $0.observers }) { observer(value) }
  }
}
