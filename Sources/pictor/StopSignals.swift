// StopSignals: SIGTERM and SIGINT as something to wait for.

import Glibc

/// Blocks the signals that end the server, for every thread started after it is made, so that only `wait` sees them.
///
/// The first thread itself waits: an asynchronous `main` would hand it to libdispatch, which unblocks all signals there.
struct StopSignals {
  private var set = sigset_t()

  /// To be made on the first thread before any other starts.
  init() {
    sigemptyset(&set)
    sigaddset(&set, SIGTERM)
    sigaddset(&set, SIGINT)
    pthread_sigmask(SIG_BLOCK, &set, nil)
    // A client or a worker that is gone is an error of write(2), not the end of the server.
    signal(SIGPIPE, SIG_IGN)
  }

  /// Waits for one of them and returns its name. A second one ends the program at once: whoever asks twice does not
  /// want to wait for the grace time.
  func wait() -> String {
    var set = set
    var received: CInt = 0
    while sigwait(&set, &received) != 0 {}
    signal(SIGTERM, SIG_DFL)
    signal(SIGINT, SIG_DFL)
    pthread_sigmask(SIG_UNBLOCK, &set, nil)
    return received == SIGTERM ? "SIGTERM" : "SIGINT"
  }
}
