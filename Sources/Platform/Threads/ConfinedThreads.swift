// ConfinedThreads: the threads that run on a part of the server's cores for a while.

import CLinux
import Glibc
import Synchronization

/// Threads of this process that were confined to some cores (`OwnThread.confine`). A new thread
/// inherits its starter's cores, so it has to leave those of a confined one.
enum ConfinedThreads {
  /// Whether there ever was one.
  private static let exist = Atomic<Bool>(false)

  /// Call before a thread is confined.
  static func begin() { exist.store(true, ordering: .relaxed) }

  /// The cores for the calling thread, or one that it starts: those of the process's first thread,
  /// which is never confined. `nil` if it has them, or if no thread ever was confined.
  static var coresToLeaveFor: Cores? {
    guard exist.load(ordering: .relaxed), let first = try? Cores.allowed(for: getpid()),
      let own = try? Cores.allowed(), own != first
    else { return nil }
    return first
  }

  /// Moves the calling thread to the cores of the first one.
  static func leave() {
    guard let mask = coresToLeaveFor?.mask else { return }
    // On Linux, 0 means the calling thread (sched_setaffinity(2)).
    _ = pictor_linux_set_affinity(0, mask, mask.count)
  }
}
