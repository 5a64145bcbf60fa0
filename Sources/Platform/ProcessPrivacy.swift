// ProcessPrivacy: keeps other processes of the same user out of this process's memory.

import CLinux

/// What other processes may see of this one.
public enum ProcessPrivacy {
  /// Closes this process to others of the same user: they cannot trace it or open its memory,
  /// environment or descriptors in /proc (prctl(2), PR_SET_DUMPABLE). It writes no core file.
  ///
  /// Call it after everything that writes below /proc/self, whose files then belong to root.
  /// Reading them stays possible. Programs that this process starts are open again.
  public static func protect() throws(SystemError) {
    guard pictor_linux_set_not_dumpable() == 0 else { throw SystemError() }
  }
}
