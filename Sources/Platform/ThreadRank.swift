// ThreadRank: which of the server's threads go first where all cores are busy.

import CLinux
import Glibc

/// How much a thread gives way, as niceness added to the process's own (sched(7), “The nice value”).
///
/// A hit waits for its event loop alone, everything else is part of a miss, which takes milliseconds anyway. No thread of
/// a lower rank holds a lock that an event loop takes for longer than a few instructions, but for the process's table of
/// descriptors and what the kernel guards itself.
public enum ThreadRank: CInt, Sendable, CaseIterable {
  /// Event loops, and what hands them connections or ends them.
  case foreground = 0
  /// What requests wait for: disk, downloads, the log.
  case work = 5
  /// What no request waits for.
  case background = 10

  /// The niceness of the process's first thread, which no other thread changes.
  private static let base = getpriority(CInt(PRIO_PROCESS.rawValue), id_t(getpid()))

  /// Gives the calling thread this rank. A thread that was started by one of a lower rank keeps that where the process may
  /// not raise it (`RLIMIT_NICE`), so event loops are started by the first thread.
  func take() {
    // On Linux, 0 is the calling thread and not its process (setpriority(2)).
    setpriority(CInt(PRIO_PROCESS.rawValue), 0, min(Self.base + rawValue, 19))
  }
}

/// The threads of Swift's own pool.
public enum TaskThreads {
  /// Gives the calling thread of the pool its rank and its name, once. The pool's threads come and go, and begin with what
  /// their starter has, which may be an event loop.
  public static func takeRank() {
    guard pictor_linux_is_first_call_of_thread() != 0 else { return }
    _ = pictor_linux_set_thread_name("pictor-task")
    ThreadRank.foreground.take()
  }
}
