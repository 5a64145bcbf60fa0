// WorkerWatch: what a worker that was taken over could use beyond its limits: shared memory, and time between jobs.

import Model
import Platform

extension WorkerSlot {
  /// How often a worker is looked at.
  static var watchPause: Duration { .seconds(1) }
  /// The processor time that a worker without a job has, to give memory back, which takes 0.3 ms a MiB, and more under a
  /// sanitizer.
  private static func restTime(of worker: WorkerProcess) -> Duration {
    .milliseconds(500 + worker.lastResidentBytes >> 20)
  }
  /// Shared memory beyond the limit of private memory and that of a new worker: sources.
  private static var sharedSlack: Int { 256 << 20 }

  /// Waits for the signal, the current worker and its successor. Ends the current worker if it works without a job.
  ///
  /// - Returns: which of them is ready; `nil` if the worker was ended.
  func watchedWait(until deadline: ContinuousClock.Instant?) -> [Bool]? {
    let worker = current
    // Several waits may be one rest: signals of other slots' jobs end a wait.
    if let worker, worker.rest == nil { worker.rest = worker.processorTime.map { (.now, $0) } }
    while true {
      let tick = worker.map { _ in ContinuousClock.now + Self.watchPause }
      let ready = Poll.wait(
        for: [
          signal.descriptor, worker?.socket.descriptor ?? -1, successor?.socket.descriptor ?? -1,
        ], until: [deadline, tick].compactMap(\.self).min())
      if let worker, let rest = worker.rest {
        let used = (worker.processorTime ?? rest.time) - rest.time
        // A twentieth of a core is for a long rest.
        let isBusy = used > Self.restTime(of: worker) + rest.since.duration(to: .now) / 20
        let isAtWork = isBusy || worker.hasResults
        if let fault = isAtWork ? "it worked without a job" : excessMemory(of: worker) {
          core.counters.lost.add()
          lose(worker, reason: fault)
          return nil
        }
      }
      if ready.contains(true) || deadline.map({ .now >= $0 }) == true { return ready }
    }
  }

  /// Returns what is wrong with the worker's shared memory; `nil` if it is within the limit.
  func excessMemory(of worker: WorkerProcess) -> String? {
    guard let limit = configuration.maximumWorkerMemory,
      .now >= worker.lookedAt + Self.watchPause
    else { return nil }
    worker.lookedAt = .now
    let bytes = worker.sharedBytes - worker.sharedAtRest
    guard bytes > limit + Self.sharedSlack else { return nil }
    return "\(bytes >> 20) MiB of shared memory"
  }
}
