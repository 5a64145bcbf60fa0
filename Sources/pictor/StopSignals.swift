// StopSignals: SIGTERM and SIGINT as something to wait for.

import Glibc
import Platform

/// Blocks the signals that end the server, for every thread started after it is made, so that only `wait` sees them.
struct StopSignals {
  private var set = sigset_t()

  /// To be made on the main thread before any other thread starts.
  init() {
    sigemptyset(&set)
    sigaddset(&set, SIGTERM)
    sigaddset(&set, SIGINT)
    pthread_sigmask(SIG_BLOCK, &set, nil)
    // A client or a worker that is gone is an error of write(2), not the end of the server.
    signal(SIGPIPE, SIG_IGN)
  }

  /// Waits for one of them and returns its name; a second one then ends the program at once.
  func wait() async throws(SystemError) -> String {
    let result = await withCheckedContinuation { continuation in
      do throws(SystemError) {
        try OwnThread.start(name: "pictor-signals") {
          var set = set
          var received: CInt = 0
          while sigwait(&set, &received) != 0 {}
          continuation.resume(returning: Result<CInt, SystemError>.success(received))
          // Whoever asks twice does not want to wait for the grace time.
          var again: CInt = 0
          while sigwait(&set, &again) != 0 {}
          _exit(1)
        }
      } catch {
        continuation.resume(returning: .failure(error))
      }
    }
    return try result.get() == SIGTERM ? "SIGTERM" : "SIGINT"
  }
}
