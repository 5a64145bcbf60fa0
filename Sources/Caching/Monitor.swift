// Monitor: a state under a lock that threads can wait for, and the threads that do.

import Glibc

/// A lock with a condition, for own threads; never waited for in a task.
final class Monitor<State>: @unchecked Sendable {
  // Sound as Sendable: the state is touched under the lock alone, and what is handed out was copied or moved out of it.
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  private var state: State

  init(_ state: State) {
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

  /// Reads or changes the state, and wakes everyone waiting.
  func change<Result>(_ body: (inout State) -> Result) -> Result {
    pthread_mutex_lock(mutex)
    defer {
      pthread_cond_broadcast(condition)
      pthread_mutex_unlock(mutex)
    }
    return body(&state)
  }

  /// Waits until `body` returns something, or so long; at the end of the time `nil`.
  func wait<Result>(for limit: Duration? = nil, _ body: (inout State) -> Result?) -> Result? {
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

/// A thread of the disk tier's own, for calls that block.
enum OwnThread {
  private final class Body {
    let name: String
    let niceness: CInt
    let run: @Sendable () -> Void

    init(_ name: String, _ niceness: CInt, _ run: @escaping @Sendable () -> Void) {
      (self.name, self.niceness, self.run) = (name, niceness, run)
    }
  }

  /// Starts a thread that nobody joins: its end is told by what it runs.
  ///
  /// - Parameters:
  ///   - name: up to 15 bytes, as `top -H` shows it.
  ///   - niceness: 0, or up to 19 for work that everything else goes before.
  static func start(
    name: String, niceness: CInt = 0, _ run: @escaping @Sendable () -> Void
  ) throws(DiskTierError) {
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    defer { pthread_attr_destroy(&attributes) }
    pthread_attr_setdetachstate(&attributes, CInt(PTHREAD_CREATE_DETACHED))
    // Released by the thread's first statement, or here when there is no thread.
    let body = Unmanaged.passRetained(Body(name, niceness, run))
    var thread = pthread_t()
    let status = pthread_create(
      &thread, &attributes,
      { argument in
        guard let argument else { return nil }
        let body = Unmanaged<Body>.fromOpaque(argument).takeRetainedValue()
        // Signals are for the program's own thread.
        var all = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, nil)
        // The call that names a thread is a GNU extension that Swift does not see; this file does the same.
        let name = open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
        if name >= 0 {
          _ = write(name, body.name, body.name.utf8.count)
          close(name)
        }
        // On Linux, 0 is the calling thread and not its process.
        if body.niceness > 0 { setpriority(CInt(PRIO_PROCESS.rawValue), 0, body.niceness) }
        body.run()
        return nil
      }, body.toOpaque())
    if status != 0 {
      body.release()
      throw .noThread(reason: SystemError(status).description)
    }
  }
}
