// StopSignals: the signals of operators as something to wait for.

import Glibc

/// Blocks the signals that would end the server, for every thread started after it is made, so that only `next` sees
/// them.
///
/// The first thread itself waits: an asynchronous `main` would hand it to libdispatch, which unblocks all signals there.
struct StopSignals {
  /// What a signal asks for.
  enum Request: Equatable {
    /// To stop; the name is for the log. After `SIGINT`, which comes from a terminal, without a delay.
    case stop(String, isFromTerminal: Bool)
    /// To read the configuration anew (`SIGHUP`).
    case reload
    /// Nothing: a signal without a meaning here, which ends no server.
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

  /// To be made on the first thread before any other starts.
  init() {
    sigemptyset(&set)
    for signal in Self.meanings.keys { sigaddset(&set, signal) }
    pthread_sigmask(SIG_BLOCK, &set, nil)
    // A client or a worker that is gone is an error of write(2), not the end of the server.
    signal(SIGPIPE, SIG_IGN)
    // So is a file that would be larger than RLIMIT_FSIZE lets it.
    signal(SIGXFSZ, SIG_IGN)
  }

  /// Waits for the next one.
  func next() -> Request {
    var set = set
    while true {
      var received: CInt = 0
      if sigwait(&set, &received) == 0, let request = Self.meanings[received] { return request }
    }
  }

  /// Waits for a further demand to stop, so long at most; what else comes is ignored.
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

  /// From now on a demand to stop ends the program at once: whoever asks again does not want to wait for the grace time.
  func endAtOnceFromNowOn() {
    var stops = sigset_t()
    sigemptyset(&stops)
    for signal in [SIGTERM, SIGQUIT, SIGINT] { sigaddset(&stops, signal) }
    pthread_sigmask(SIG_UNBLOCK, &stops, nil)
  }
}
