// DiskWorkers: the threads that wait for the disk, so that no task and no server thread does.

import Glibc
import Platform

/// A few threads and two queues. Reads go before writes, and one thread is always left to them.
final class DiskWorkers: Sendable {
  typealias Job = @Sendable () -> Void

  fileprivate struct State {
    var reads = Fifo<Job>()
    var writes = Fifo<Job>()
    var writing = 0
    var mayWrite = false
    /// No job is taken any more; those that wait are still done.
    var isDraining = false
    /// Those that wait are not done either.
    var isStopped = false
    /// Threads that wait, and have not been told to go on.
    var idle = 0
  }

  fileprivate enum Step {
    case read(Job)
    case write(Job)
    case wait
    case end
  }

  /// What the threads share; they hold it, and not the object that ends them.
  private final class Shared: Sendable {
    let state = Lock(State())
    let wake = Semaphore()
    /// Threads that have not ended.
    let threads = Monitor(0)
    /// How many threads may write at a time.
    let writers: Int

    init(writers: Int) { self.writers = writers }
  }

  private let shared: Shared
  private let readLimit: Int

  /// Starts the threads; writes wait until they are allowed.
  init(threads: Int, readLimit: Int) throws(DiskTierError) {
    self.readLimit = readLimit
    let count = max(threads, 2)
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

  /// Queues a read; `false` when too many wait or the tier is stopping.
  func read(_ job: @escaping Job) -> Bool {
    add { state in
      guard state.reads.count < readLimit else { return false }
      state.reads.append(job)
      return true
    }
  }

  /// Queues a removal: before the writes, and never too many.
  func remove(_ job: @escaping Job) -> Bool {
    add { state in
      state.reads.append(job)
      return true
    }
  }

  /// Queues a write; `false` when the tier is stopping. What it holds is bounded by whoever queues it.
  func write(_ job: @escaping Job) -> Bool {
    add { state in
      state.writes.append(job)
      return true
    }
  }

  /// Queues what may as well not be done; `false` when too much waits or the tier is stopping.
  func writeIfIdle(_ job: @escaping Job) -> Bool {
    add { state in
      guard state.writes.count < readLimit else { return false }
      state.writes.append(job)
      return true
    }
  }

  /// Lets the writes begin.
  func allowWrites() {
    wakeAll { $0.mayWrite = true }
  }

  /// Takes no more jobs, does those that wait, for at most so long, and ends the threads. Tells whether all ended.
  func finish(within limit: Duration) -> Bool {
    wakeAll { $0.isDraining = true }
    let isDone = shared.threads.wait(for: limit) { $0 == 0 ? true : nil } ?? false
    stop()
    return isDone
  }

  private func stop() {
    // The jobs are released after the lock: they hold bodies.
    let left = wakeAll { state -> [Fifo<Job>] in
      state.isDraining = true
      state.isStopped = true
      defer { (state.reads, state.writes) = (Fifo(), Fifo()) }
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
        // Whoever was woken for a job that nobody was allowed to do yet waits again: it is for this thread to see that
        // it is done now.
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

extension DiskWorkers.State {
  private func mayBeginWrite(writers: Int) -> Bool {
    mayWrite && writing < writers && writes.count > 0
  }

  private var isOver: Bool { isStopped || (isDraining && reads.count == 0 && writes.count == 0) }

  /// What a thread does next; one that waits counts as idle.
  fileprivate mutating func next(writers: Int) -> DiskWorkers.Step {
    if isOver { return .end }
    if let job = reads.popFirst() { return .read(job) }
    if mayBeginWrite(writers: writers), let job = writes.popFirst() {
      writing += 1
      return .write(job)
    }
    idle += 1
    return .wait
  }

  /// Whether an idle thread has something to do, or to end; it then is to be woken and counts as idle no more.
  fileprivate mutating func takesIdleThread(writers: Int) -> Bool {
    guard idle > 0, isOver || reads.count > 0 || mayBeginWrite(writers: writers) else {
      return false
    }
    idle -= 1
    return true
  }
}

/// A queue in an array whose used-up front is cut off now and then.
struct Fifo<Element> {
  private var elements: [Element?] = []
  private var head = 0

  var count: Int { elements.count - head }

  mutating func append(_ element: Element) { elements.append(element) }

  mutating func popFirst() -> Element? {
    guard head < elements.count else { return nil }
    let element = elements[head]
    elements[head] = nil
    head += 1
    if head == elements.count {
      elements.removeAll(keepingCapacity: true)
      head = 0
    } else if head > 64, head * 2 > elements.count {
      elements.removeFirst(head)
      head = 0
    }
    return element
  }
}
