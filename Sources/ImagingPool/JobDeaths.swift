// JobDeaths: what is done about a job whose worker died, and what it is told in the end.

import Model

/// The workers that died with one job. Pure.
///
/// | A worker that | is followed by | and a second one by |
/// | --- | --- | --- |
/// | was killed (the OOM killer) | another, once no other job runs | 503, for now |
/// | met its bound of memory | another, unless it was new | 503, for now |
/// | crashed | another | 422 for this variant |
///
/// No source is listed for any of it: what ends a worker may be the encoder's fault, or the machine's. A variant that
/// crashes two workers is, since a crash is no matter of chance, and would cost two more each time.
struct JobDeaths {
  /// What comes next.
  enum Verdict: Equatable {
    /// Another worker tries.
    case again
    /// Another worker tries, once no other job runs.
    case againAlone
    /// This is the answer.
    case giveUp(ImageError)
  }

  private var causes: [WorkerEnd.Cause] = []

  /// Takes note of a death.
  ///
  /// - Parameters:
  ///   - end: How the worker ended by itself; `nil` where it had to be ended, or that is not known.
  ///   - isFresh: Whether it was the worker's first job.
  mutating func add(_ end: WorkerEnd?, isFresh: Bool) -> Verdict {
    causes.append(end?.cause ?? .crash)
    let detail = "a worker ended with \(end?.description ?? "nonsense")"
    let isOfMemory = causes.contains { $0 != .crash }
    guard causes.count < 2 else {
      return .giveUp(
        isOfMemory
          ? .outOfMemory(detail: "two workers were lost; \(detail)")
          : .ofVariant(.undecodable(detail: "two workers crashed; \(detail)")))
    }
    switch causes[0] {
    case .killed: return .againAlone
    case .memoryBound where isFresh: return .giveUp(.outOfMemory(detail: detail))
    case .memoryBound, .crash: return .again
    }
  }
}
