// BlockingThreads: runs blocking calls on dedicated threads, outside of Swift's cooperative pool.

/// Why a call returned no value.
public enum BlockingFailure: Error, Hashable, Sendable {
  /// The deadline passed. If the call had begun, it continues and its result is dropped.
  case late
  /// Too many calls wait, or all threads are stuck in late calls.
  case full
}

/// Runs blocking calls, such as disk reads, on its own threads, each with a deadline.
///
/// A stalled disk blocks only these threads. If all of them are stuck, further calls fail at once
/// until one returns. Calls start the threads on demand, and the threads end with the object.
public final class BlockingThreads: Sendable {
  private struct State {
    var jobs = Deque<Job>()
    var threads = 0
    var idle = 0
    /// The number of threads in a call that is late.
    var stuck = 0
    var isEnded = false
  }

  /// The state that the threads share. They do not retain the owner, whose `deinit` ends them.
  private final class Shared: Sendable {
    let state = Lock(State())
    let wake = Semaphore()
  }

  private let shared = Shared()
  private let name: String
  private let limit: Int
  private let queueLimit: Int
  private let deadline: Duration

  /// - Parameters:
  ///   - name: the thread name, up to 15 bytes.
  ///   - threads: the maximum number of threads, at least 1.
  ///   - queueLimit: the maximum number of waiting calls.
  ///   - deadline: the maximum duration of a call, including its wait.
  public init(
    name: String, threads: Int = 4, queueLimit: Int = 1_000, deadline: Duration = .seconds(10)
  ) {
    self.name = name
    limit = max(threads, 1)
    self.queueLimit = queueLimit
    self.deadline = deadline
  }

  deinit {
    let count = shared.state.withLock { state in
      state.isEnded = true
      return state.threads
    }
    for _ in 0..<count { shared.wake.post() }
  }

  /// Runs `call` on one of the threads and returns its result.
  ///
  /// - Throws: `BlockingFailure`. Cancelling the task has no effect, because the call cannot be
  ///   interrupted.
  public func value<Value: Sendable>(
    of call: @escaping @Sendable () -> Value
  ) async throws(BlockingFailure) -> Value {
    let result = Lock<Value?>(nil)
    let job = Job { [result] in
      let value = call()
      result.withLock { $0 = value }
    }
    guard add(job) else { throw .full }
    let watch = Task { [deadline, shared] in
      guard (try? await Task.sleep(for: deadline)) != nil else { return }
      guard let wasRunning = job.giveUp() else { return }
      // The thread may have subtracted 1 already; the sum is correct in either order.
      if wasRunning { shared.state.withLock { $0.stuck += 1 } }
      job.resume()
    }
    await job.end()
    watch.cancel()
    guard let value = result.withLock({ $0 }), !job.isLate else { throw .late }
    return value
  }

  private func add(_ job: Job) -> Bool {
    let (isAdded, mustWake, mustStart) = shared.state.withLock { state in
      guard state.jobs.count < queueLimit, state.stuck < limit else { return (false, false, false) }
      state.jobs.append(job)
      if state.idle > 0 {
        state.idle -= 1
        return (true, true, false)
      }
      guard state.threads < limit else { return (true, false, false) }
      state.threads += 1
      return (true, false, true)
    }
    if mustWake { shared.wake.post() }
    guard mustStart else { return isAdded }
    do throws(SystemError) {
      try OwnThread.start(name: name, rank: .work) { [shared] in Self.run(shared) }
      return true
    } catch {
      // Another thread may do it; without any, nothing would before the deadline.
      return shared.state.withLock { state in
        state.threads -= 1
        if state.threads == 0 { state.jobs.removeAll { $0 === job } }
        return state.threads > 0
      }
    }
  }

  private static func run(_ shared: Shared) {
    while true {
      let (job, isEnded) = shared.state.withLock { state -> (Job?, Bool) in
        if let job = state.jobs.popFirst() { return (job, false) }
        if !state.isEnded { state.idle += 1 }
        return (nil, state.isEnded)
      }
      if isEnded { return }
      guard let job else {
        shared.wake.wait()
        continue
      }
      guard job.begin() else { continue }
      job.call()
      if job.finish() {
        job.resume()
      } else {
        shared.state.withLock { $0.stuck -= 1 }
      }
    }
  }
}

/// A call, which ends once: with its result or at its deadline.
private final class Job: Sendable {
  private enum Phase {
    case waiting
    case running
    case ended
    case late
  }

  private struct State {
    var phase = Phase.waiting
    var continuation: CheckedContinuation<Void, Never>?
    var isResumed = false
  }

  let call: @Sendable () -> Void
  private let state = Lock(State())

  init(_ call: @escaping @Sendable () -> Void) { self.call = call }

  /// Whether the deadline passed first.
  var isLate: Bool { state.withLock { $0.phase == .late } }

  /// Marks the call as running. Returns `false` if its deadline has passed.
  func begin() -> Bool {
    state.withLock { state in
      guard state.phase == .waiting else { return false }
      state.phase = .running
      return true
    }
  }

  /// Marks the call as ended. Returns `false` if its deadline has passed.
  func finish() -> Bool {
    state.withLock { state in
      guard state.phase == .running else { return false }
      state.phase = .ended
      return true
    }
  }

  /// Marks the call as late. Returns whether a thread is running it, or `nil` if it ended before.
  func giveUp() -> Bool? {
    state.withLock { state in
      guard state.phase == .waiting || state.phase == .running else { return nil }
      defer { state.phase = .late }
      return state.phase == .running
    }
  }

  /// Resumes the task that waits in `end`, now or when it gets there.
  func resume() {
    let waiting = state.withLock { state in
      state.isResumed = true
      defer { state.continuation = nil }
      return state.continuation
    }
    waiting?.resume()
  }

  func end() async {
    await withCheckedContinuation { continuation in
      let isOver = state.withLock { state in
        if !state.isResumed { state.continuation = continuation }
        return state.isResumed
      }
      if isOver { continuation.resume() }
    }
  }
}
