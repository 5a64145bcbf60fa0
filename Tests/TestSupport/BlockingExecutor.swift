// BlockingExecutor: runs blocking tests on threads of their own.

import Platform

/// A task executor that runs each job on a new thread. Test clients block; on Swift's cooperative
/// pool, with one thread per core, they would starve the tasks they wait for.
public final class BlockingExecutor: TaskExecutor {
  /// The shared executor.
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
