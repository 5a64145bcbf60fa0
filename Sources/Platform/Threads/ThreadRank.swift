// ThreadRank: the order of the server's threads when all cores are busy.

import CLinux
import Glibc

/// The rank of a thread. The raw value is added to the niceness of the process (sched(7), “The nice
/// value”), so a smaller value is a higher rank.
///
/// A hit waits only for its event loop. If other threads share a lock with event loops, they hold
/// it for a few instructions at most. Locks inside the kernel are exempt, such as that of the
/// descriptor table.
public enum ThreadRank: CInt, Sendable, CaseIterable {
  /// Event loops, threads that accept and end connections, senders of imaging jobs, Swift's pool.
  case foreground = 0
  /// Disk, downloads, local files, the log, memory pressure.
  case work = 5
  /// Work that no request waits for.
  case background = 10

  /// The niceness of the process's first thread, read once. A later renice(1) has no effect on it.
  private static let base = getpriority(CInt(PRIO_PROCESS.rawValue), id_t(getpid()))

  /// Gives the calling thread this rank.
  ///
  /// A thread inherits the rank of the thread that starts it, and an unprivileged process cannot
  /// raise it again (`RLIMIT_NICE`). So the first thread starts the event loops.
  func take() {
    // On Linux, 0 means the calling thread, not its process (setpriority(2)).
    setpriority(CInt(PRIO_PROCESS.rawValue), 0, min(Self.base + rawValue, 19))
  }
}

/// The threads of Swift's own pool.
public enum TaskThreads {
  /// Names the pool's calling thread and gives it the rank `foreground` and all cores, once.
  ///
  /// The pool starts threads as needed, and each inherits name, niceness and cores. An unprivileged
  /// process cannot raise a lower rank: the niceness stays.
  public static func takeRank() {
    guard pictor_linux_is_first_call_of_thread() != 0 else { return }
    ThreadRank.foreground.take()
    ConfinedThreads.leave()
    // Set last: a thread with this name has its rank.
    _ = pictor_linux_set_thread_name("pictor-task")
  }
}
