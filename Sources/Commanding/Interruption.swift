// Interruption: turns SIGINT and similar signals into a state and a descriptor, so that a command
// can clean up.

import Core
import Glibc

/// Whether the command must stop. Once set, it stays set.
final class Interruption: Sendable {
  /// Signals within this time after the first one, in microseconds, belong to it. A closing
  /// terminal or a service manager sends two at once; a second Ctrl-C takes longer.
  private static let together: useconds_t = 200_000

  private let noted = Lock<CInt?>(nil)
  private let wake: WakeSignal

  /// Creates an interruption that only `note` sets.
  init() throws(SystemError) { wake = try WakeSignal() }

  /// Creates an interruption that SIGINT, SIGTERM and SIGHUP set. A second signal ends the program
  /// at once. SIGHUP stays ignored if it was, as under nohup(1).
  ///
  /// Must be called once, on the main thread, before any other thread starts.
  static func ofProgram() throws(SystemError) -> Interruption {
    let interruption = try Interruption()
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, SIGINT)
    sigaddset(&set, SIGTERM)
    if !isIgnored(SIGHUP) { sigaddset(&set, SIGHUP) }
    pthread_sigmask(SIG_BLOCK, &set, nil)
    let signals = set
    // A thread, because poll(2) can wait for its descriptor, and Swift's Glibc lacks signalfd(2).
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

  /// Does the same for a command, unless a test has given another interruption.
  static func ofCommand(or given: Interruption?) throws(CommandFailure) -> Interruption {
    do throws(SystemError) { return if let given { given } else { try .ofProgram() } } catch {
      throw CommandFailure(description: "cannot wait for signals: \(error)")
    }
  }

  /// The signal; `nil` before it arrives.
  var signal: CInt? { noted.withLock { $0 } }

  /// A descriptor that becomes readable with the signal.
  var descriptor: CInt { wake.descriptor }

  /// Sets the interruption. The first signal counts.
  func note(_ signal: CInt) {
    noted.withLock { $0 = $0 ?? signal }
    wake.set()
  }

  /// Waits until the signal arrives, for at most `milliseconds`. Returns the signal; `nil` if it
  /// has not arrived.
  func wait(milliseconds: CInt) -> CInt? {
    var watched = Poll([descriptor])
    // Another signal may end the wait earlier, which is harmless.
    watched.wait(milliseconds: milliseconds)
    return signal
  }

  private static func isIgnored(_ signal: CInt) -> Bool {
    var action = sigaction()
    sigaction(signal, nil, &action)
    // SIG_IGN is the pointer value 1 (signal.h): it can be compared but not called.
    return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == 1
  }

  private static func next(of signals: sigset_t) -> CInt {
    var set = signals
    var signal: CInt = 0
    while sigwait(&set, &signal) != 0 {}
    return signal
  }
}
