// BlockingThreads: runs blocking calls on dedicated threads, outside of Swift's cooperative pool.

/// Why a call returned no value.
public enum BlockingFailure: Error, Hashable, Sendable {
  /// The deadline passed. If the call had begun, it continues and its result is dropped.
  case late
  /// Too many calls wait, or all threads are stuck in late calls.
  case full
}

/// Runs blocking calls, such as disk reads, on its own threads.
///
/// A stalled disk blocks only these threads. If all of them are stuck, further calls fail at once
/// until one returns. Calls start the threads on demand, and the threads end with the object.
public final class BlockingThreads: Sendable {
  /// A call. What it captures is released once it has run or was dropped.
  public typealias Call = @Sendable () -> Void

  /// Which calls go first.
  public enum Lane: Sendable {
    /// Before all background calls.
    case urgent
    /// Leaves threads free for urgent calls, if the pool was created so.
    case background
  }

  fileprivate struct State {
    var urgent = Deque<Call>()
    var background = Deque<Call>()
    var threads = 0
    /// Threads that have been started and have not looked for a call yet.
    var starting = 0
    /// Threads that wait and have not been woken.
    var idle = 0
    /// Threads in a background call, and the most of them.
    var inBackground = 0
    let limit: Int
    let backgroundLimit: Int
    /// Whether background calls wait for `release`.
    var isHeld: Bool
    /// The number of threads in a call that is late.
    var stuck = 0
    /// New calls are refused; those that wait still run.
    var isDraining = false
    /// Those that wait do not run either.
    var isStopped = false
  }

  private enum Step {
    case run(Call, isBackground: Bool)
    case wait
    case end
  }

  /// The state that the threads share. They do not retain the owner, whose `deinit` ends them.
  private final class Shared: Sendable {
    let state: Lock<State>
    let wake = Semaphore()
    /// The number of threads, for who waits for their end.
    let threads = Monitor(0)

    init(_ state: State) { self.state = Lock(state) }
  }

  private let shared: Shared
  private let name: String
  private let limit: Int
  private let queueLimit: Int
  private let deadline: Duration

  /// - Parameters:
  ///   - name: the thread name, up to 15 bytes. Behind a final `-` each thread has its number.
  ///   - threads: the maximum number of threads, at least 1.
  ///   - background: the maximum number of threads in background calls, at least 1; `nil`: all.
  ///   - isHeld: whether background calls wait for `release`.
  ///   - queueLimit: the maximum number of waiting calls of each lane.
  ///   - deadline: the maximum duration of a call of `value`, including its wait.
  public init(
    name: String, threads: Int = 4, background: Int? = nil, isHeld: Bool = false,
    queueLimit: Int = 1_000, deadline: Duration = .seconds(10)
  ) {
    self.name = name
    limit = max(threads, 1)
    self.queueLimit = queueLimit
    self.deadline = deadline
    shared = Shared(
      State(limit: limit, backgroundLimit: max(background ?? limit, 1), isHeld: isHeld))
  }

  deinit { wakeAll { $0.isDraining = true } }

  /// Starts all threads now.
  public func start() throws(SystemError) {
    while shared.state.withLock({ $0.grow() }) { try startThread() }
  }

  /// Queues a call. Returns `false` if it will not run: too many wait, the threads are stuck or
  /// ending, or there is none.
  ///
  /// - Parameter isBounded: whether the limit of waiting calls applies, and stuck threads refuse.
  ///   Without it, the caller bounds their number.
  public func add(
    _ lane: Lane = .urgent, isBounded: Bool = true, _ call: @escaping Call
  ) -> Bool {
    if shared.state.withLock({ $0.threads == 0 && $0.grow() }), (try? startThread()) == nil {
      return false
    }
    let (isAdded, mustWake, mustGrow) = shared.state.withLock { state in
      let waiting = lane == .urgent ? state.urgent.count : state.background.count
      guard !state.isDraining, !isBounded || state.stuck < limit && waiting < queueLimit else {
        return (false, false, false)
      }
      if lane == .urgent { state.urgent.append(call) } else { state.background.append(call) }
      if state.takesIdleThread() { return (true, true, false) }
      // Decided here: a thread that was idle before may have another call by now.
      return (true, false, state.runnable > state.starting && state.grow())
    }
    if mustWake { shared.wake.post() }
    // Without another thread, those that run take the call later.
    if mustGrow { try? startThread() }
    return isAdded
  }

  /// Lets background calls begin.
  public func release() { wakeAll { $0.isHeld = false } }

  /// Refuses new calls, runs those that wait within `limit`, and ends the threads. Returns whether
  /// all have ended.
  public func finish(within limit: Duration) -> Bool {
    wakeAll { $0.isDraining = true }
    let isDone = shared.threads.wait(for: limit) { $0 == 0 ? true : nil } ?? false
    stop()
    return isDone
  }

  /// Refuses new calls and drops those that wait. Does not wait for the threads.
  public func stop() {
    // The calls hold bodies, so they are released outside the lock.
    let left = wakeAll { state -> [Deque<Call>] in
      state.isDraining = true
      state.isStopped = true
      defer {
        state.urgent = Deque()
        state.background = Deque()
      }
      return [state.urgent, state.background]
    }
    withExtendedLifetime(left) {}
  }

  private func wakeAll<Result>(_ body: (inout State) -> Result) -> Result {
    let (result, idle) = shared.state.withLock { state in
      defer { state.idle = 0 }
      return (body(&state), state.idle)
    }
    for _ in 0..<idle { shared.wake.post() }
    return result
  }

  // MARK: The threads

  private func startThread() throws(SystemError) {
    let number = shared.threads.change { threads in
      threads += 1
      return threads - 1
    }
    do throws(SystemError) {
      let name = name.hasSuffix("-") ? name + "\(number)" : name
      try OwnThread.start(name: name, rank: .work) { [shared] in
        Self.run(shared)
        shared.threads.change { $0 -= 1 }
      }
    } catch {
      shared.state.withLock { state in
        state.threads -= 1
        state.starting -= 1
      }
      shared.threads.change { $0 -= 1 }
      throw error
    }
  }

  private static func run(_ shared: Shared) {
    var wasInBackground = false
    var isNew = true
    while true {
      let (step, mustWake) = shared.state.withLock { state in
        if isNew { state.starting -= 1 }
        if wasInBackground { state.inBackground -= 1 }
        let step = next(&state)
        // Another thread may have been woken for a call that it was not allowed to run, and waits
        // again. Wake it if the call may run now.
        return (step, state.takesIdleThread())
      }
      if mustWake { shared.wake.post() }
      isNew = false
      wasInBackground = false
      switch step {
      case .run(let call, let isBackground):
        call()
        wasInBackground = isBackground
      case .wait: shared.wake.wait()
      case .end: return
      }
    }
  }

  /// Returns the next step of a thread. A thread that waits counts as idle.
  private static func next(_ state: inout State) -> Step {
    if state.isOver { return .end }
    if let call = state.urgent.popFirst() { return .run(call, isBackground: false) }
    if state.mayBeginBackground, let call = state.background.popFirst() {
      state.inBackground += 1
      return .run(call, isBackground: true)
    }
    state.idle += 1
    return .wait
  }

  // MARK: Values

  /// Runs `call` on one of the threads and returns its result.
  ///
  /// - Throws: `BlockingFailure`. Cancelling the task has no effect, because the call cannot be
  ///   interrupted.
  public func value<Value: Sendable>(
    of call: @escaping @Sendable () -> Value
  ) async throws(BlockingFailure) -> Value {
    let result = Lock<Value?>(nil)
    let awaited = AwaitedCall()
    let isAdded = add { [shared] in
      guard awaited.begin() else { return }
      let value = call()
      result.withLock { $0 = value }
      if !awaited.finish() { shared.state.withLock { $0.stuck -= 1 } }
    }
    guard isAdded else { throw .full }
    let watch = Task { [deadline, shared] in
      guard (try? await Task.sleep(for: deadline)) != nil else { return }
      awaited.giveUp {
        // The thread may have subtracted 1 already; the sum is correct in either order.
        shared.state.withLock { $0.stuck += 1 }
      }
    }
    await awaited.end()
    watch.cancel()
    guard let value = result.withLock({ $0 }), !awaited.isLate else { throw .late }
    return value
  }
}

extension BlockingThreads.State {
  /// Calls that threads may begin now.
  fileprivate var runnable: Int {
    urgent.count + (isHeld ? 0 : min(background.count, max(backgroundLimit - inBackground, 0)))
  }

  /// Returns whether another thread has to be started, which counts from now on.
  fileprivate mutating func grow() -> Bool {
    guard threads < limit, !isDraining else { return false }
    threads += 1
    starting += 1
    return true
  }

  fileprivate var mayBeginBackground: Bool {
    !isHeld && inBackground < backgroundLimit && !background.isEmpty
  }

  fileprivate var isOver: Bool {
    isStopped || (isDraining && urgent.isEmpty && background.isEmpty)
  }

  /// Returns whether an idle thread must be woken, for a call or to end. A woken thread no longer
  /// counts as idle.
  fileprivate mutating func takesIdleThread() -> Bool {
    guard idle > 0, isOver || !urgent.isEmpty || mayBeginBackground else { return false }
    idle -= 1
    return true
  }
}

/// A call that a task waits for. It ends once: with its result or at its deadline.
private final class AwaitedCall: Sendable {
  private enum Phase {
    case waiting
    case running
    case ended
    case late
  }

  private struct State {
    var phase = Phase.waiting
    var continuation: CheckedContinuation<Void, Never>?
  }

  private let state = Lock(State())

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

  /// Ends the call. Returns `false` if its deadline has passed.
  func finish() -> Bool { end(as: .ended) {} }

  /// Ends the call as late, unless it has ended.
  ///
  /// - Parameter note: called if a thread is running it, before the task continues.
  func giveUp(_ note: () -> Void) { _ = end(as: .late, note) }

  private func end(as phase: Phase, _ note: () -> Void) -> Bool {
    let ended = state.withLock { state -> (wasRunning: Bool, CheckedContinuation<Void, Never>?)? in
      guard state.phase == .waiting || state.phase == .running else { return nil }
      defer { state.phase = phase }
      return (state.phase == .running, state.continuation.take())
    }
    guard let (wasRunning, continuation) = ended else { return false }
    if wasRunning { note() }
    continuation?.resume()
    return true
  }

  /// Returns when the call has ended.
  func end() async {
    await withCheckedContinuation { continuation in
      let isOver = state.withLock { state in
        guard state.phase == .waiting || state.phase == .running else { return true }
        state.continuation = continuation
        return false
      }
      if isOver { continuation.resume() }
    }
  }
}
