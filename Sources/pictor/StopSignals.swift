// StopSignals: waits for the signals that control the server.

import Glibc

/// Blocks the handled signals in every thread started later, so that only `next` receives them.
///
/// The main thread itself waits. An asynchronous `main` would hand the main thread to libdispatch,
/// which unblocks all signals there.
struct StopSignals {
  enum Request: Equatable {
    /// Stop the server. The name is for the log. A stop from a terminal (`SIGINT`) has no shutdown
    /// delay.
    case stop(String, isFromTerminal: Bool)
    /// Read the configuration again (`SIGHUP`).
    case reload
    /// No action. Without handling, the signal would end the server.
    case nothing(String)
  }

  private static let meanings: [CInt: Request] = [
    SIGTERM: .stop("SIGTERM", isFromTerminal: false),
    SIGQUIT: .stop("SIGQUIT", isFromTerminal: false),
    SIGINT: .stop("SIGINT", isFromTerminal: true), SIGHUP: .reload,
    SIGUSR1: .nothing("SIGUSR1"), SIGUSR2: .nothing("SIGUSR2"), SIGALRM: .nothing("SIGALRM"),
    SIGVTALRM: .nothing("SIGVTALRM"), SIGPROF: .nothing("SIGPROF"), SIGIO: .nothing("SIGIO"),
  ]

  private var set = sigset_t()

  /// Blocks the signals. Must be called on the main thread before any other thread starts.
  init() {
    sigemptyset(&set)
    for signal in Self.meanings.keys { sigaddset(&set, signal) }
    pthread_sigmask(SIG_BLOCK, &set, nil)
    // A broken connection to a client or worker is an error of write(2) and must not end the
    // server.
    signal(SIGPIPE, SIG_IGN)
    // So is a file that would be larger than RLIMIT_FSIZE lets it.
    signal(SIGXFSZ, SIG_IGN)
  }

  /// Waits for the next signal; `nil` for one without a meaning.
  func next() -> Request? {
    var set = set
    return Self.meanings[sigwaitinfo(&set, nil)]
  }

  /// Waits for another stop signal within `time`. Other signals are ignored.
  ///
  /// - Returns: whether there was one.
  func stopsAgain(within time: Duration) -> Bool {
    let end = ContinuousClock.now + time
    var set = set
    while true {
      let rest = end - ContinuousClock.now
      guard rest > .zero else { return false }
      let (seconds, attoseconds) = rest.components
      var wait = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
      if case .stop? = Self.meanings[sigtimedwait(&set, nil, &wait)] { return true }
    }
  }

  /// Unblocks the stop signals, so that another one ends the program at once, without the grace
  /// period.
  func endAtOnceFromNowOn() {
    var stops = sigset_t()
    sigemptyset(&stops)
    for signal in [SIGTERM, SIGQUIT, SIGINT] { sigaddset(&stops, signal) }
    pthread_sigmask(SIG_UNBLOCK, &stops, nil)
  }
}
