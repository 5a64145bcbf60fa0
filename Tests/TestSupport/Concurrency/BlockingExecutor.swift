// BlockingExecutor: runs blocking tests on threads of their own.

import Core

/// A task executor that runs each job on a thread that no other job uses meanwhile.
///
/// Test clients block. On Swift's cooperative pool, with one thread per core, they would starve the
/// tasks they wait for. Threads are reused and live as long as the process.
public final class BlockingExecutor: TaskExecutor {
  /// The shared executor.
  public static let shared = BlockingExecutor()

  private struct State {
    var waiting: [UnownedJob] = []
    /// Threads that wait for a job, less the jobs that wait for a thread.
    var idle = 0
  }

  private let state = Lock(State())
  private let jobs = Semaphore()

  /// Runs a job on an idle thread, or on a new one if there is none.
  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let needsThread = state.withLock { state in
      state.waiting.append(job)
      state.idle -= 1
      return state.idle < 0
    }
    if needsThread { startThread() }
    jobs.post()
  }

  private func startThread() {
    let executor = asUnownedTaskExecutor()
    // The thread counts as idle from now on.
    state.withLock { $0.idle += 1 }
    do {
      try OwnThread.start(name: "pictor-test", rank: .foreground) {
        while true {
          self.jobs.wait()
          let job = self.state.withLock { $0.waiting.removeFirst() }
          job.runSynchronously(on: executor)
          self.state.withLock { $0.idle += 1 }
        }
      }
    } catch {
      preconditionFailure("no thread for a test: \(error)")
    }
  }
}
