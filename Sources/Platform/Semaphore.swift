// Semaphore: wake-ups that are counted, so that none is lost and each wakes one thread.

import Glibc

/// A POSIX semaphore (sem_overview(7)) that starts at 0, for own threads; never waited for in a task.
///
/// A condition variable would do where every wake-up is a broadcast. Its `pthread_cond_signal` can be lost in glibc 2.25
/// to 2.40 (sourceware bug 25847); a semaphore's post cannot.
public final class Semaphore: @unchecked Sendable {
  // Sound as Sendable: any thread may post and wait, and the memory does not move and lives as long as this object.
  private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  /// Nothing posted yet.
  public init() { sem_init(semaphore, 0, 0) }

  deinit {
    sem_destroy(semaphore)
    semaphore.deallocate()
  }

  /// Lets one waiting thread go on, or the next that waits.
  public func post() { sem_post(semaphore) }

  /// Waits for one post.
  public func wait() {
    // Interrupted by a signal is all that can go wrong.
    while sem_wait(semaphore) != 0 {}
  }
}
