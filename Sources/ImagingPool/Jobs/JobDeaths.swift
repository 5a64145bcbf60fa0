// JobDeaths: decides what happens to a job whose worker died.

import Model

/// The deaths of workers with one job. A pure state machine.
///
/// | The worker | first death | second death |
/// | --- | --- | --- |
/// | was killed (the OOM killer) | retry when no other job runs | 503 |
/// | reached its memory limit | retry, or 503 if the worker was new | 503 |
/// | crashed | retry | 422 for this variant |
///
/// If only one of two workers crashed, the job fails with 503, because memory may be the cause.
///
/// No death is negatively cached for the source, because the encoder or the machine may be at
/// fault. A second crash is negatively cached for the variant, because each request would crash two
/// more workers.
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

  private var causes: [WorkerEnd.Cause] = []

  /// Records a death.
  ///
  /// - Parameters:
  ///   - end: how the worker ended by itself; `nil` if it was killed by the pool or the end is
  ///     unknown.
  ///   - isFresh: whether this was the worker's first job.
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
