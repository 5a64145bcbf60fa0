// BlockingExecutor: where tests that block run, so that they block nobody else.

import Platform

/// Runs each piece of a task on a thread of its own. Clients in tests block, and blocked in Swift's own pool, which has
/// a thread a core, they would keep the tasks they wait for from running.
public final class BlockingExecutor: TaskExecutor {
  /// The one there is.
  public static let shared = BlockingExecutor()

  /// Runs a job on a new thread.
  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let executor = asUnownedTaskExecutor()
    do {
      try OwnThread.start(name: "pictor-test", rank: .foreground) {
        job.runSynchronously(on: executor)
      }
    } catch {
      preconditionFailure("no thread for a test: \(error)")
    }
  }
}
