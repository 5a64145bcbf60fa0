// Lock: a value behind a POSIX mutex.

import Glibc

/// The same as Synchronization's `Mutex`, over a lock the thread sanitizer knows.
///
/// On Linux a contended `Mutex` is handed from thread to thread by the kernel (`FUTEX_LOCK_PI`), which the sanitizer
/// does not see: it then reports races between two holders of the lock. `pthread_mutex_lock` it does see.
final class Lock<Value>: @unchecked Sendable {
  // Sound as Sendable: `value` is only touched while the mutex is held.

  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private var value: Value

  /// Puts a value behind a lock.
  init(_ value: sending Value) {
    self.value = value
    // Cannot fail: default attributes, memory of its own.
    mutex.initialize(to: pthread_mutex_t())
    pthread_mutex_init(mutex, nil)
  }

  deinit {
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
  }

  /// Runs a short piece of work with the value to itself. Never around an `await` or a callback.
  func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return try body(&value)
  }
}
