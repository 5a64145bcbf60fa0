// OwnThread: a dedicated thread for blocking C calls.

import CLinux
import Glibc

/// A POSIX thread that runs one closure, outside of Swift's cooperative pool. All signals are
/// blocked, because the main thread handles them.
public final class OwnThread: Sendable {
  private final class Start: Sendable {
    let name: String
    let rank: ThreadRank?
    let run: @Sendable () -> Void
    let end: End

    init(name: String, rank: ThreadRank?, end: End, run: @escaping @Sendable () -> Void) {
      self.name = name
      self.rank = rank
      self.run = run
      self.end = end
    }
  }

  /// Whether the thread has ended. Its lock is held across a system call that does not block.
  private final class End: Sendable {
    let isThere = Lock(false)
  }

  /// `nil` after the thread was joined or detached.
  private let thread: Lock<pthread_t?>
  private let end = End()

  /// Starts a joinable thread.
  ///
  /// - Parameters:
  ///   - name: up to 15 bytes, as `top -H` shows it.
  ///   - rank: who goes before it where all cores are busy; `nil`: as the calling thread.
  ///   - stackBytes: the size of its stack; `nil`: the system's 8 MiB (setrlimit(2)).
  ///   - run: what it does; the thread ends with it.
  public init(
    name: String, rank: ThreadRank?, stackBytes: Int? = nil, _ run: @escaping @Sendable () -> Void
  ) throws(SystemError) {
    // Released by the thread as its first act, or below when there is none.
    let start = Unmanaged.passRetained(Start(name: name, rank: rank, end: end, run: run))
    var thread = pthread_t()
    // Before it runs: `confine` may follow at once.
    let cores = ConfinedThreads.coresToLeaveFor
    var status = Self.create(&thread, start.toOpaque(), stackBytes: stackBytes, cores: cores)
    if status == EINVAL, cores != nil {
      // An operator took these cores meanwhile (cpuset(7)).
      status = Self.create(&thread, start.toOpaque(), stackBytes: stackBytes, cores: nil)
    }
    guard status == 0 else {
      start.release()
      throw SystemError(status)
    }
    self.thread = Lock(thread)
  }

  /// Calls pthread_create(3) for a retained `Start`; returns its status.
  private static func create(
    _ thread: inout pthread_t, _ start: UnsafeMutableRawPointer, stackBytes: Int?, cores: Cores?
  ) -> CInt {
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    defer { pthread_attr_destroy(&attributes) }
    if let stackBytes { pthread_attr_setstacksize(&attributes, stackBytes) }
    if let mask = cores?.mask {
      _ = pictor_linux_set_attribute_affinity(&attributes, mask, mask.count)
    }
    return pthread_create(
      &thread, &attributes,
      { argument in
        guard let argument else { return nil }
        let start = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
        var all = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, nil)
        // A neutral name first: a thread with its creator's name, or its own, has its rank.
        _ = pictor_linux_set_thread_name("pictor-new")
        start.rank?.take()
        _ = pictor_linux_set_thread_name(start.name)
        start.run()
        start.end.isThere.withLock { $0 = true }
        return nil
      }, start)
  }

  /// Starts a detached thread. The parameters are those of `init`.
  public static func start(
    name: String, rank: ThreadRank?, stackBytes: Int? = nil, _ run: @escaping @Sendable () -> Void
  ) throws(SystemError) {
    try OwnThread(name: name, rank: rank, stackBytes: stackBytes, run).detach()
  }

  /// The processor time of the thread; `nil` after it was joined or detached, or has ended.
  public var processorTime: Duration? {
    thread.withLock { thread in
      var clock = clockid_t()
      var time = timespec()
      // A thread that is not joined keeps its number.
      guard let thread, pthread_getcpuclockid(thread, &clock) == 0,
        clock_gettime(clock, &time) == 0
      else { return nil }
      return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
  }

  /// Lets the thread run on these cores only. Threads that it has started stay where they are. Does
  /// nothing once the thread has ended, or was joined or detached.
  ///
  /// - Throws: `EINVAL` if the process may use none of them (cpuset(7)); the thread stays.
  public func confine(to cores: Cores) throws(SystemError) {
    ConfinedThreads.begin()
    let mask = cores.mask
    let status = thread.withLock { thread in
      // glibc takes a thread that has ended for the calling one.
      end.isThere.withLock { hasEnded in
        guard let thread, !hasEnded else { return CInt(0) }
        return pictor_linux_set_thread_affinity(thread, mask, mask.count)
      }
    }
    guard status == 0 else { throw SystemError(status) }
  }

  /// Leaves the thread to itself: the system frees it when it ends. Later calls do nothing.
  public func detach() {
    if let thread = thread.withLock({ $0.take() }) { pthread_detach(thread) }
  }

  /// Waits for the thread to end. Later calls return at once.
  public func join() {
    if let thread = thread.withLock({ $0.take() }) { pthread_join(thread, nil) }
  }
}
