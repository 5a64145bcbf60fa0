// Monitor: a state with a lock and a condition that threads can wait for.

import Glibc

/// A state with a lock and a condition variable. Only dedicated threads may wait for it, never a
/// task.
public final class Monitor<State>: @unchecked Sendable {
  // Sound as Sendable: the state is only accessed under the lock, and results are copied or moved
  // out of it.
  @usableFromInline let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  @usableFromInline let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  @usableFromInline var state: State

  /// Creates an unlocked monitor with its state.
  @inlinable public init(_ state: State) {
    self.state = state
    pthread_mutex_init(mutex, nil)
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    pthread_cond_init(condition, &attributes)
    pthread_condattr_destroy(&attributes)
  }

  deinit {
    pthread_cond_destroy(condition)
    pthread_mutex_destroy(mutex)
    condition.deallocate()
    mutex.deallocate()
  }

  /// Reads or changes the state and wakes all waiting threads.
  @inlinable public func change<Result>(_ body: (inout State) -> Result) -> Result {
    pthread_mutex_lock(mutex)
    defer {
      pthread_cond_broadcast(condition)
      pthread_mutex_unlock(mutex)
    }
    return body(&state)
  }

  /// Waits until `body` returns a value. Returns `nil` when the time limit is over.
  @inlinable public func wait<Result>(for limit: Duration? = nil, _ body: (inout State) -> Result?)
    -> Result?
  {
    var deadline = timespec()
    if let limit {
      clock_gettime(CLOCK_MONOTONIC, &deadline)
      let parts = max(limit, .zero).components
      deadline.tv_sec += Int(clamping: min(parts.seconds, 1 << 40))
      deadline.tv_nsec += Int(parts.attoseconds / 1_000_000_000)
      if deadline.tv_nsec >= 1_000_000_000 {
        deadline.tv_sec += 1
        deadline.tv_nsec -= 1_000_000_000
      }
    }
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    while true {
      if let result = body(&state) { return result }
      let status =
        limit == nil
        ? pthread_cond_wait(condition, mutex)
        : pthread_cond_timedwait(condition, mutex, &deadline)
      if status == ETIMEDOUT { return body(&state) }
    }
  }
}
