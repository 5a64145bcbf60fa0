// WorkerEnd: how a worker process ended and what caused it.

import CLinux
import Glibc

/// The exit status of a worker (wait4(2)) and the end of its standard error.
struct WorkerEnd: Hashable, Sendable, CustomStringConvertible {
  /// The cause of a worker's end.
  enum Cause: Hashable, Sendable {
    /// It was killed, usually by the OOM killer, which chooses workers first.
    case killed
    /// An allocation failed at the worker's memory limit, and the library aborted.
    case memoryBound
    /// A fault in a decoder or in Pictor.
    case crash
  }

  /// The status of wait(2): the lower seven bits hold the signal, the next byte the exit status. `nil` if unknown.
  let status: CInt?
  /// The end of its standard error.
  var lastWords = ""

  /// The cause. Only the OOM killer and operators send SIGKILL to a worker that the pool has not
  /// killed.
  ///
  /// If an allocation fails, GLib, the C++ library and Rust end the process with a message: "failed to allocate 4096
  /// bytes", "std::bad_alloc", "memory allocation of 4096 bytes failed".
  /// An unknown end is no evidence against the job, so it counts as `killed`.
  var cause: Cause {
    guard let status else { return .killed }
    switch status & 0x7f {
    case SIGKILL: return .killed
    case SIGABRT, SIGTRAP, SIGILL:
      let text = lastWords.lowercased()
      return ["allocat", "bad_alloc", "out of memory"].contains { text.contains($0) }
        ? .memoryBound : .crash
    default: return .crash
    }
  }

  var description: String {
    guard let status else { return "unknown end" }
    let signal = status & 0x7f
    guard signal != 0 else { return "exit status \(status >> 8 & 0xff)" }
    return "signal \(signal) (\(String(cString: strsignal(signal))))"
  }
}
