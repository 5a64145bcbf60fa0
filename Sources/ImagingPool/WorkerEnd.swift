// WorkerEnd: how a worker process ended, what caused it, and what becomes of its job.

import CLinux
import Core
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

  /// The status of wait(2): the lower seven bits hold the signal, the next byte the exit status.
  /// `nil` if unknown.
  let status: CInt?
  /// The end of its standard error.
  var lastWords = ""

  /// The cause. Only the OOM killer and operators send SIGKILL to a worker that the pool has not
  /// killed.
  ///
  /// If an allocation fails, GLib, the C++ library and Rust end the process with a message: "failed
  /// to allocate 4096 bytes", "std::bad_alloc", "memory allocation of 4096 bytes failed". An
  /// unknown end is no evidence against the job, so it counts as `killed`.
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

/// The deaths of workers with one job. A pure state machine.
///
/// | The worker | first death | second death |
/// | --- | --- | --- |
/// | was killed (the OOM killer) | retry when no other job runs | 503 |
/// | reached its memory limit | retry, or 422 for this variant if the worker was new | 422 for this variant if the worker was new, else 503 |
/// | crashed | retry | 422 for this variant |
///
/// If only one of two workers crashed, the job fails with 503, because memory may be the cause. A
/// job that needs more than all memory of a new worker never succeeds, so it is `too_costly`.
/// Without a limit for workers, the machine's memory is exhausted, and the job fails with 503.
///
/// For the source, no death is negatively cached, because the encoder or the machine may be at
/// fault. For the variant, a 422 is, because each request would cost two more workers.
struct JobDeaths {
  /// What happens next.
  enum Verdict: Equatable {
    /// Retry with another worker.
    case again
    /// Retry with another worker when no other job runs.
    case againAlone
    /// Answer with this error.
    case giveUp(ImageError)
  }

  /// The memory of a worker in bytes; `nil` without a limit.
  private let workerMemory: Int?
  private var causes: [WorkerEnd.Cause] = []

  /// Creates a state without deaths.
  ///
  /// - Parameter workerMemory: the memory of a worker in bytes; `nil` without a limit.
  init(workerMemory: Int?) { self.workerMemory = workerMemory }

  /// Records a death.
  ///
  /// - Parameters:
  ///   - end: how the worker ended by itself; `nil` if it was killed by the pool or the end is
  ///     unknown.
  ///   - isFresh: whether this was the worker's first job.
  ///   - isHeld: whether the worker had less than all of its memory.
  mutating func add(_ end: WorkerEnd?, isFresh: Bool, isHeld: Bool) -> Verdict {
    let cause = end?.cause ?? .crash
    causes.append(cause)
    let detail = "a worker ended with \(end?.description ?? "nonsense")"
    if cause == .memoryBound, isFresh {
      return .giveUp(failure(ofMemory: detail, isHeld: isHeld))
    }
    let isOfMemory = causes.contains { $0 != .crash }
    guard causes.count < 2 else {
      return .giveUp(
        isOfMemory
          ? .outOfMemory(detail: "two workers were lost; \(detail)")
          : .ofVariant(.undecodable(detail: "two workers crashed; \(detail)")))
    }
    return cause == .killed ? .againAlone : .again
  }

  /// Returns the failure of a job for which the memory of a new worker did not suffice.
  ///
  /// - Parameter isHeld: whether the worker had less than all of its memory.
  func failure(ofMemory detail: String, isHeld: Bool) -> ImageError {
    guard let workerMemory, !isHeld else { return .outOfMemory(detail: detail) }
    return .ofVariant(
      .tooCostly(
        reason: "it takes more than the \(workerMemory >> 20) MiB of memory that a worker has",
        key: ImagingLimits.memoryKey))
  }
}
