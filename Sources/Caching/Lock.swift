// Lock: a value that one thread at a time may touch, with a lock that the thread sanitizer sees.

import Glibc

/// What `Synchronization.Mutex` is, on a pthread mutex. The standard one waits inside a library that the thread
/// sanitizer cannot look into, so that it reports a race wherever two threads did meet; this one costs the same.
final class Lock<Value>: @unchecked Sendable {
  // Sound as Sendable: the value is touched under the mutex alone, and what `withLock` hands out was copied or moved
  // out of it. In memory of its own, so that no access is checked for exclusivity twice.
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let value = UnsafeMutablePointer<Value>.allocate(capacity: 1)

  init(_ value: Value) {
    pthread_mutex_init(mutex, nil)
    self.value.initialize(to: value)
  }

  deinit {
    pthread_mutex_destroy(mutex)
    value.deinitialize(count: 1)
    value.deallocate()
    mutex.deallocate()
  }

  /// Calls `body` with the value, alone.
  func withLock<Result, Failure: Error>(_ body: (inout Value) throws(Failure) -> Result)
    throws(Failure) -> Result
  {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return try body(&value.pointee)
  }
}
