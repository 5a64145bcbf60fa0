// DiskWorkers: the threads that wait for the disk, so that no task and no server thread does.

import Glibc
import Platform

/// A few threads and two queues. Reads go before writes, and one thread is always left to them.
final class DiskWorkers: Sendable {
  typealias Job = @Sendable () -> Void

  private struct State {
    var reads = Fifo<Job>()
    var writes = Fifo<Job>()
    var writing = 0
    var mayWrite = false
    /// No job is taken any more; those that wait are still done.
    var isDraining = false
    /// Those that wait are not done either.
    var isStopped = false
    var threads = 0
  }

  private enum Step {
    case read(Job)
    case write(Job)
    case end
  }

  private let monitor = Monitor(State())
  private let readLimit: Int

  /// Starts the threads; writes wait until they are allowed.
  init(threads: Int, readLimit: Int) throws(DiskTierError) {
    self.readLimit = readLimit
    let count = max(threads, 2)
    for number in 0..<count {
      monitor.change { $0.threads += 1 }
      do throws(SystemError) {
        try OwnThread.start(name: "pictor-disk-\(number)") { [monitor] in
          Self.run(monitor, writers: count - 1)
        }
      } catch {
        monitor.change { $0.threads -= 1 }
        stop()
        throw .noThread(reason: error.description)
      }
    }
  }

  deinit { stop() }

  /// Queues a read; `false` when too many wait or the tier is stopping.
  func read(_ job: @escaping Job) -> Bool {
    monitor.change { state in
      guard !state.isDraining, state.reads.count < readLimit else { return false }
      state.reads.append(job)
      return true
    }
  }

  /// Queues a removal: before the writes, and never too many.
  func remove(_ job: @escaping Job) -> Bool {
    monitor.change { state in
      guard !state.isDraining else { return false }
      state.reads.append(job)
      return true
    }
  }

  /// Queues a write; `false` when the tier is stopping. What it holds is bounded by whoever queues it.
  func write(_ job: @escaping Job) -> Bool {
    monitor.change { state in
      guard !state.isDraining else { return false }
      state.writes.append(job)
      return true
    }
  }

  /// Lets the writes begin.
  func allowWrites() { monitor.change { $0.mayWrite = true } }

  /// Takes no more jobs, does those that wait, for at most so long, and ends the threads. Tells whether all ended.
  func finish(within limit: Duration) -> Bool {
    monitor.change { $0.isDraining = true }
    let isDone = monitor.wait(for: limit) { $0.threads == 0 ? true : nil } ?? false
    stop()
    return isDone
  }

  private func stop() {
    // The jobs are released after the lock: they hold bodies.
    let left = monitor.change { state -> [Fifo<Job>] in
      state.isDraining = true
      state.isStopped = true
      defer { (state.reads, state.writes) = (Fifo(), Fifo()) }
      return [state.reads, state.writes]
    }
    withExtendedLifetime(left) {}
  }

  private static func run(_ monitor: Monitor<State>, writers: Int) {
    while let step = monitor.wait({ state in next(&state, writers) }) {
      switch step {
      case .read(let job):
        job()
      case .write(let job):
        job()
        monitor.change { $0.writing -= 1 }
      case .end:
        monitor.change { $0.threads -= 1 }
        return
      }
    }
  }

  private static func next(_ state: inout State, _ writers: Int) -> Step? {
    if state.isStopped { return .end }
    if let job = state.reads.popFirst() { return .read(job) }
    if state.mayWrite, state.writing < writers, let job = state.writes.popFirst() {
      state.writing += 1
      return .write(job)
    }
    return state.isDraining && state.writes.count == 0 ? .end : nil
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
