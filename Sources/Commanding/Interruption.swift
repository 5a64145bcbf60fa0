// Interruption: Ctrl-C and SIGTERM as something to look for now and then, so that what was begun can be ended.

import Glibc

/// Blocks SIGINT and SIGTERM from its making on; they are found by `wait`.
struct Interruption {
  private var set = sigset_t()

  /// To be made on the first thread, with no other there.
  init() {
    sigemptyset(&set)
    sigaddset(&set, SIGINT)
    sigaddset(&set, SIGTERM)
    pthread_sigmask(SIG_BLOCK, &set, nil)
  }

  /// Waits for so many milliseconds, below a second, or until one of them comes, which is returned. A second one ends
  /// the program at once.
  func wait(milliseconds: Int) -> CInt? {
    var set = set
    var time = timespec(tv_sec: 0, tv_nsec: milliseconds * 1_000_000)
    let signal = sigtimedwait(&set, nil, &time)
    guard signal > 0 else { return nil }
    pthread_sigmask(SIG_UNBLOCK, &set, nil)
    return signal
  }
}
