// Interruption: Ctrl-C and its like as something to look for and to wait for, so that what was begun can be ended.

import Glibc
import Platform

/// Whether somebody wants the program to end. Stays once it came.
final class Interruption: Sendable {
  /// What comes this soon after the first signal, in microseconds, was sent with it: a terminal that closes or a service
  /// manager sends two at once, and a person who is impatient needs longer.
  private static let together: useconds_t = 200_000

  private let noted = Lock<CInt?>(nil)
  private let wake: WakeSignal

  /// One that comes by `note` alone.
  init() throws(SystemError) { wake = try WakeSignal() }

  /// The one that SIGINT, SIGTERM and SIGHUP bring from here on; a second one ends the program at once. SIGHUP is left
  /// alone where it is ignored, as nohup(1) has it.
  ///
  /// To be made once, on the first thread, with no other there.
  static func ofProgram() throws(SystemError) -> Interruption {
    let interruption = try Interruption()
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, SIGINT)
    sigaddset(&set, SIGTERM)
    if !isIgnored(SIGHUP) { sigaddset(&set, SIGHUP) }
    pthread_sigmask(SIG_BLOCK, &set, nil)
    let signals = set
    // A thread, since poll(2) can wait for what it sets, and signalfd(2) is not among what Swift's Glibc has.
    try OwnThread.start(name: "pictor-signals", rank: .foreground) {
      interruption.note(next(of: signals))
      usleep(together)
      var pending = signals
      var none = timespec()
      while sigtimedwait(&pending, nil, &none) > 0 {}
      _exit(128 + next(of: signals))
    }
    return interruption
  }

  /// The signal, once it came.
  var signal: CInt? { noted.withLock { $0 } }

  /// To wait on: readable from the signal on.
  var descriptor: CInt { wake.descriptor }

  /// Has it come, by this signal.
  func note(_ signal: CInt) {
    noted.withLock { $0 = $0 ?? signal }
    wake.set()
  }

  /// Waits for so many milliseconds, or until it comes; returns the signal then.
  func wait(milliseconds: CInt) -> CInt? {
    var watched = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    // Cut short by a stray signal, it only returns earlier.
    _ = poll(&watched, 1, milliseconds)
    return signal
  }

  private static func isIgnored(_ signal: CInt) -> Bool {
    var action = sigaction()
    sigaction(signal, nil, &action)
    // SIG_IGN is the number 1 in a pointer's place (signal.h): it can be compared, and not be called.
    return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == 1
  }

  private static func next(of signals: sigset_t) -> CInt {
    var set = signals
    var signal: CInt = 0
    while sigwait(&set, &signal) != 0 {}
    return signal
  }
}
