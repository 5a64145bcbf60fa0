// ProcessSetup: limits a worker process before it loads anything.

import CLinux
import Core
import Glibc

/// A setting that the kernel refused.
public struct SetupError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The system call.
  let call: String
  /// Its `errno`.
  let code: CInt

  /// The call and the reason.
  public var description: String { "\(call): \(errnoText(code))" }
}

/// The signals, priorities and limits of a worker.
public enum ProcessSetup {
  /// Applies all settings. Must be called once, before any thread starts. Returns the niceness that
  /// the kernel may not have accepted yet.
  public static func apply(_ options: WorkerOptions) throws(SetupError) -> SessionNiceness {
    // The closed connection also tells that the server has ended, but only between jobs.
    try check("prctl", status: pictor_linux_set_death_signal(SIGKILL))
    try check("prctl", status: pictor_linux_set_no_new_privileges())
    // Only the server handles Ctrl-C and a service manager's SIGTERM; it ends a worker by closing
    // the connection. SIGXFSZ is ignored so that a write fails with an error instead.
    for number in [SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ] { signal(number, SIG_IGN) }
    try ResourceLimits.apply(options)
    offerToOOMKiller()
    var session = SessionNiceness(lowering: options.niceness)
    session.startSession()
    // Last: it also takes away this process's right to open its files in /proc for writing.
    guard options.sandbox != .off else { return session }
    do throws(SystemError) {
      try ProcessPrivacy.protect()
    } catch {
      throw SetupError(call: "prctl", code: error.code)
    }
    return session
  }

  /// The worker's oom_score_adj, in thousandths of all memory. 1,000 stays for processes that must
  /// be killed first.
  private static let killScore = 900

  /// Makes the OOM killer prefer a worker to the server, which holds caches and connections
  /// (proc_pid_oom_score_adj(5)). A higher score stays, and a failure is ignored.
  private static func offerToOOMKiller() {
    let file = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC)
    guard file >= 0 else { return }
    defer { close(file) }
    var text = [UInt8](repeating: 0, count: 16)
    let count = max(read(file, &text, text.count), 0)
    let digits = String(decoding: text[..<count], as: UTF8.self).prefix { $0 != "\n" }
    guard (Int(digits) ?? 0) < killScore else { return }
    var score = "\(killScore)"
    score.withUTF8 { _ = pwrite(file, $0.baseAddress, $0.count, 0) }
  }

  private static func check(_ call: String, status: CInt) throws(SetupError) {
    guard status == 0 else { throw SetupError(call: call, code: errno) }
  }
}
