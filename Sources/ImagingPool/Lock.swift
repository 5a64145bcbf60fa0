// Lock: a value that one thread at a time may touch, with a lock that the thread sanitizer sees.

import Glibc

/// `Synchronization.Mutex` on a pthread mutex. The standard one's locking is compiled without the sanitizer, which then
/// reports a race wherever two threads met (55 times in this target's tests, all of them false).
final class Lock<Value>: @unchecked Sendable {
  // Sound as Sendable: the value is touched under the mutex alone. Both live in memory of their own, since a mutex must
  // not move and an access through a property would be checked for exclusivity outside of the lock.
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let value = UnsafeMutablePointer<Value>.allocate(capacity: 1)

  init(_ value: Value) {
    pthread_mutex_init(mutex, nil)
    self.value.initialize(to: value)
  }

  deinit {
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
    value.deinitialize(count: 1)
    value.deallocate()
  }

  /// Calls `body` with the value, alone.
  func withLock<Result, Failure: Error>(
    _ body: (inout Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return try body(&value.pointee)
  }
}
