// BlockingThreads: a few threads for calls that may wait for a disk, so that no task of Swift's own pool does.

/// Why a call has no result.
public enum BlockingFailure: Error, Hashable, Sendable {
  /// It took too long; if it had begun, it goes on and its result is dropped.
  case late
  /// Too many calls wait, all threads are stuck in late ones, or no thread could be started.
  case full
}

/// Runs blocking calls on threads of its own, each with a deadline.
///
/// A disk that does not answer holds up these threads and nothing else. Once it holds all of them, further calls fail at
/// once, until one of them comes back. The threads are started by the first call and end with the object.
public final class BlockingThreads: Sendable {
  private struct State {
    var jobs = [Job]()
    var threads = 0
    var idle = 0
    /// Threads whose present call is late.
    var stuck = 0
    var isEnded = false
  }

  /// What the threads share; they hold it, and not the object that ends them.
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
  ///   - name: of the threads, up to 15 bytes.
  ///   - threads: most of them, at least 1.
  ///   - queueLimit: most calls that wait for one.
  ///   - deadline: how long a call may take, its wait included.
  public init(
    name: String, threads: Int = 4, queueLimit: Int = 1_000, deadline: Duration = .seconds(10)
  ) {
    (self.name, limit) = (name, max(threads, 1))
    (self.queueLimit, self.deadline) = (queueLimit, deadline)
  }

  deinit {
    let count = shared.state.withLock { state in
      state.isEnded = true
      return state.threads
    }
    for _ in 0..<count { shared.wake.post() }
  }

  /// What a call returns, which runs on one of the threads.
  ///
  /// - Throws: `BlockingFailure`. Cancelling the task changes nothing: the call cannot be interrupted.
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
      // The thread may have come back meanwhile and taken itself off already: the sum is right all the same.
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
        if !state.jobs.isEmpty { return (state.jobs.removeFirst(), false) }
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

/// One call: it ends once, by its result or by its deadline.
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

  /// Whether its deadline came first.
  var isLate: Bool { state.withLock { $0.phase == .late } }

  /// Whether it is still wanted.
  func begin() -> Bool {
    state.withLock { state in
      guard state.phase == .waiting else { return false }
      state.phase = .running
      return true
    }
  }

  /// Whether it ended in time.
  func finish() -> Bool {
    state.withLock { state in
      guard state.phase == .running else { return false }
      state.phase = .ended
      return true
    }
  }

  /// Ends it as late; tells whether a thread is in it. `nil`: it ended before.
  func giveUp() -> Bool? {
    state.withLock { state in
      guard state.phase == .waiting || state.phase == .running else { return nil }
      defer { state.phase = .late }
      return state.phase == .running
    }
  }

  /// Wakes whoever waits for its end, now or later.
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
