// Semaphore: a counting semaphore that wakes one thread per post.

import Glibc

/// A POSIX semaphore (sem_overview(7)) with initial value 0, for dedicated threads. Tasks must not
/// wait on it.
///
/// `pthread_cond_signal` can lose wake-ups in glibc 2.25 to 2.40 (sourceware bug 25847); a
/// semaphore does not.
public final class Semaphore: @unchecked Sendable {
  // Sound as Sendable: any thread may post and wait, and the memory does not move and lives as long
  // as this object.
  private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  /// Creates a semaphore with value 0.
  public init() { sem_init(semaphore, 0, 0) }

  deinit {
    sem_destroy(semaphore)
    semaphore.deallocate()
  }

  /// Wakes one waiting thread, or the next one that waits.
  public func post() { sem_post(semaphore) }

  /// Waits for one post.
  public func wait() {
    // The only possible error is an interruption by a signal.
    while sem_wait(semaphore) != 0 {}
  }
}
