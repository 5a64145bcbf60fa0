// DiskThreads: the disk threads, which keep blocking calls away from tasks and event loops.

import Glibc
import Platform

/// The disk threads with a read queue and a write queue. Reads go before writes, and one thread is
/// always free for reads.
final class DiskThreads: Sendable {
  typealias Job = @Sendable () -> Void

  fileprivate struct State {
    var reads = Deque<Job>()
    var writes = Deque<Job>()
    var writing = 0
    var mayWrite = false
    /// New jobs are refused; queued jobs still run.
    var isDraining = false
    /// Queued jobs do not run either.
    var isStopped = false
    /// Number of waiting threads that have not been woken.
    var idle = 0
  }

  fileprivate enum Step {
    case read(Job)
    case write(Job)
    case wait
    case end
  }

  /// The state that the threads share. They do not hold `DiskThreads`, so that its `deinit` can
  /// stop them.
  private final class Shared: Sendable {
    let state = Lock(State())
    let wake = Semaphore()
    /// Number of running threads.
    let threads = Monitor(0)
    /// Maximum number of threads that write at the same time.
    let writers: Int

    init(writers: Int) { self.writers = writers }
  }

  private let shared: Shared
  private let readLimit: Int

  /// Starts the threads. Writes wait until `allowWrites()`.
  init(count: Int, readLimit: Int) throws(DiskTierError) {
    self.readLimit = readLimit
    let count = max(count, 2)
    shared = Shared(writers: count - 1)
    for number in 0..<count {
      shared.threads.change { $0 += 1 }
      do throws(SystemError) {
        try OwnThread.start(name: "pictor-disk-\(number)", rank: .work) { [shared] in
          Self.run(shared)
        }
      } catch {
        shared.threads.change { $0 -= 1 }
        stop()
        throw .noThread(reason: error.description)
      }
    }
  }

  deinit { stop() }

  /// Queues a read. Returns `false` if the queue is full or the tier is stopping.
  func read(_ job: @escaping Job) -> Bool {
    add { state in
      guard state.reads.count < readLimit else { return false }
      state.reads.append(job)
      return true
    }
  }

  /// Queues a removal, before all writes. Returns `false` only if the tier is stopping.
  func remove(_ job: @escaping Job) -> Bool {
    add { state in
      state.reads.append(job)
      return true
    }
  }

  /// Queues a write. Returns `false` if the tier is stopping. The caller bounds the number of
  /// writes.
  func write(_ job: @escaping Job) -> Bool {
    add { state in
      state.writes.append(job)
      return true
    }
  }

  /// Queues an optional write. Returns `false` if the queue is full or the tier is stopping.
  func writeIfIdle(_ job: @escaping Job) -> Bool {
    add { state in
      guard state.writes.count < readLimit else { return false }
      state.writes.append(job)
      return true
    }
  }

  /// Allows writes to start.
  func allowWrites() {
    wakeAll { $0.mayWrite = true }
  }

  /// Refuses new jobs, runs the queued ones within `limit`, and stops the threads. Returns whether
  /// all threads ended.
  func finish(within limit: Duration) -> Bool {
    wakeAll { $0.isDraining = true }
    let isDone = shared.threads.wait(for: limit) { $0 == 0 ? true : nil } ?? false
    stop()
    return isDone
  }

  private func stop() {
    // The jobs hold bodies, so they are released outside the lock.
    let left = wakeAll { state -> [Deque<Job>] in
      state.isDraining = true
      state.isStopped = true
      defer {
        state.reads = Deque()
        state.writes = Deque()
      }
      return [state.reads, state.writes]
    }
    withExtendedLifetime(left) {}
  }

  private func add(_ append: (inout State) -> Bool) -> Bool {
    let (isAdded, mustWake) = shared.state.withLock { state in
      guard !state.isDraining, append(&state) else { return (false, false) }
      return (true, state.takesIdleThread(writers: shared.writers))
    }
    if mustWake { shared.wake.post() }
    return isAdded
  }

  private func wakeAll<Result>(_ body: (inout State) -> Result) -> Result {
    let (result, idle) = shared.state.withLock { state in
      defer { state.idle = 0 }
      return (body(&state), state.idle)
    }
    for _ in 0..<idle { shared.wake.post() }
    return result
  }

  private static func run(_ shared: Shared) {
    var hasWritten = false
    while true {
      let (step, mustWake) = shared.state.withLock { state in
        if hasWritten { state.writing -= 1 }
        let step = state.next(writers: shared.writers)
        // Another thread may have been woken for a job that it was not allowed to run, and waits
        // again. Wake it if the job may run now.
        return (step, state.takesIdleThread(writers: shared.writers))
      }
      if mustWake { shared.wake.post() }
      hasWritten = false
      switch step {
      case .read(let job):
        job()
      case .write(let job):
        job()
        hasWritten = true
      case .wait:
        shared.wake.wait()
      case .end:
        return shared.threads.change { $0 -= 1 }
      }
    }
  }
}

extension DiskThreads.State {
  private func mayBeginWrite(writers: Int) -> Bool {
    mayWrite && writing < writers && !writes.isEmpty
  }

  private var isOver: Bool { isStopped || (isDraining && reads.isEmpty && writes.isEmpty) }

  /// Returns the next step of a thread. A thread that waits counts as idle.
  fileprivate mutating func next(writers: Int) -> DiskThreads.Step {
    if isOver { return .end }
    if let job = reads.popFirst() { return .read(job) }
    if mayBeginWrite(writers: writers), let job = writes.popFirst() {
      writing += 1
      return .write(job)
    }
    idle += 1
    return .wait
  }

  /// Returns whether an idle thread must be woken, for a job or to end. A woken thread no longer
  /// counts as idle.
  fileprivate mutating func takesIdleThread(writers: Int) -> Bool {
    guard idle > 0, isOver || !reads.isEmpty || mayBeginWrite(writers: writers) else {
      return false
    }
    idle -= 1
    return true
  }
}
