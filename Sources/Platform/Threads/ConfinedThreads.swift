// ConfinedThreads: the threads that run on a part of the server's cores for a while.

import CLinux
import Glibc
import Synchronization

/// Threads of this process that were confined to some cores (`OwnThread.confine`). A thread inherits the cores of the one
/// that starts it, so what a confined thread starts has to leave them.
enum ConfinedThreads {
  /// Whether there ever was one.
  private static let exist = Atomic<Bool>(false)

  /// Call before a thread is confined.
  static func begin() { exist.store(true, ordering: .relaxed) }

  /// The cores of a new thread: those of the process's first one, which is never confined; `nil` for those of its
  /// starter, where no thread ever was.
  static var coresOfNew: Cores? {
    exist.load(ordering: .relaxed) ? try? Cores.allowed(for: getpid()) : nil
  }

  /// Gives the calling thread the cores of a new one. Costs nothing where no thread was ever confined.
  static func leave() {
    guard let mask = coresOfNew?.mask else { return }
    // On Linux, 0 means the calling thread (sched_setaffinity(2)).
    _ = pictor_linux_set_affinity(0, mask, mask.count)
  }
}
