// Lock: a mutex that guards a value.

import Glibc

/// A variant of `Synchronization.Mutex` on a pthread mutex, for contended state.
///
/// The thread sanitizer does not see the standard mutex's wait and reports each contended access as
/// a race.
public final class Lock<Value>: @unchecked Sendable {
  // Sound as Sendable: the value is only reached through `withLock`, under the mutex.

  // Both are allocated separately: a pthread mutex must not move, and this avoids exclusivity
  // checks.
  @usableFromInline let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  @usableFromInline let value = UnsafeMutablePointer<Value>.allocate(capacity: 1)

  /// Creates an unlocked mutex with its value.
  @inlinable public init(_ value: sending Value) {
    pthread_mutex_init(mutex, nil)
    self.value.initialize(to: value)
  }

  deinit {
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
    value.deinitialize(count: 1)
    value.deallocate()
  }

  /// Calls `body` with exclusive access to the value. `body` must not take the same lock or call
  /// back. It may take another lock if all code takes the two in this order.
  @inlinable public func withLock<Result, Failure: Error>(
    _ body: (inout Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return try body(&value.pointee)
  }

  /// Replaces the value, and returns the old one.
  @inlinable public func exchange(_ new: Value) -> Value {
    withLock { value in
      defer { value = new }
      return value
    }
  }
}
