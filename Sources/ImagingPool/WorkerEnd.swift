// WorkerEnd: how a worker process ended, and what that says about the job it had.

import CLinux
import Glibc

/// The end of a worker as the kernel tells it (wait4(2)), with its last words.
struct WorkerEnd: Hashable, Sendable, CustomStringConvertible {
  /// What a job can be told of its worker's end.
  enum Cause: Hashable, Sendable {
    /// The kernel, or an operator, killed it: as a rule the OOM killer, which takes workers first.
    case killed
    /// An allocation failed under the worker's own bound, and the library that made it gave up.
    case memoryBound
    /// A fault of a decoder or of our own.
    case crash
  }

  /// wait(2): the lower seven bits hold the signal, the next byte the exit status; `nil` if it is not known.
  let status: CInt?
  /// The end of its standard error.
  var lastWords = ""

  /// Nobody but the kernel's OOM killer and operators send SIGKILL to a worker that was not given up before.
  ///
  /// GLib, the C++ library and Rust end a process whose allocation fails, and say so: "failed to allocate 4096 bytes",
  /// "std::bad_alloc", "memory allocation of 4096 bytes failed".
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
