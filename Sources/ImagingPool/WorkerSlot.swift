// WorkerSlot: keeps one imaging worker running, gives it jobs and replaces it.

import Core
import Glibc

/// The state and the loop of a slot's thread.
final class WorkerSlot: @unchecked Sendable {
  // Sound as Sendable: one thread creates it and hands it to the slot's thread, which alone uses it
  // afterwards.

  let index: Int
  let core: PoolCore
  let signal: WakeSignal
  /// The ready worker.
  var current: WorkerProcess?
  /// A starting worker that will replace the current one.
  var successor: WorkerProcess?
  var backoff = RespawnBackoff()
  /// Killed processes that are not reaped yet.
  private var ending: [pid_t] = []

  var configuration: ImagerPoolConfiguration { core.configuration }

  init(index: Int, core: PoolCore, signal: WakeSignal) {
    self.index = index
    self.core = core
    self.signal = signal
  }

  /// Runs until the pool stops.
  func run() {
    while true {
      tendWorkers()
      switch core.next(slot: index, isReady: current != nil) {
      case .job(let id, let pending): perform(id, job: pending)
      case .wait: rest()
      case .leave: return leave()
      }
    }
  }

  /// Between jobs: starts a worker if none runs or if the current one must be replaced. Never
  /// blocks.
  private func tendWorkers() {
    lookAtSuccessor()
    ending.removeAll { WorkerProcess.reap($0, within: .zero) != nil }
    guard successor == nil, current.map(isDue) ?? true, backoff.allows(.now) else { return }
    start()
  }

  private func isDue(_ worker: WorkerProcess) -> Bool {
    worker.jobs >= configuration.maximumJobsPerWorker
      || worker.riskyJobs >= configuration.maximumRiskyJobs
      || worker.lastResidentBytes > configuration.retireAboveResidentBytes
  }

  /// Starts a successor.
  func start() {
    do throws(ImagerStartError) {
      let worker = try WorkerProcess(configuration)
      successor = worker
      core.log.debug("worker started", fields: ["pid": .int(Int(worker.pid))])
    } catch {
      startFailed(error.reason)
    }
  }

  private func startFailed(_ reason: String) {
    if let worker = successor {
      successor = nil
      _ = end(worker, patience: .zero)
    }
    backoff.failed(at: .now)
    let error = ImagerStartError(executable: configuration.executable, reason: reason)
    core.log.error("\(error)")
    core.started(.failure(error))
    guard current == nil, backoff.isExhausted else { return }
    core.update(slot: index) { $0.fault = "\(error)" }
  }

  /// Waits for a job, a deadline, or an event of a worker.
  private func rest() {
    placeLoops()
    var deadlines = [core.stopAt, successorDeadline]
    if core.reserve?.isUncertain == true { deadlines.append(.now + CoreReserve.readingPause) }
    if successor == nil && current.map(isDue) ?? true { deadlines.append(backoff.notBefore) }
    if !ending.isEmpty { deadlines.append(.now + .milliseconds(10)) }
    guard let ready = watchedWait(until: deadlines.compactMap(\.self).min()) else { return }
    if ready[0] { signal.reset() }
    // A worker without a job has nothing to send.
    if ready[1], let worker = current {
      if worker.jobs == 0 { backoff.failed(at: .now) }
      lose(worker, reason: "it ended, or spoke, without a job")
    }
  }

  var successorDeadline: ContinuousClock.Instant? {
    successor.map { $0.startedAt + configuration.startDeadline }
  }

  /// Makes the successor the current worker when it is ready. Discards it if it fails.
  func lookAtSuccessor() {
    guard let worker = successor else { return }
    let report: SandboxReport
    do throws(WireError) {
      let message = try worker.socket.receive()
      let answer = try AnswerMessage(decoding: message.bytes)
      guard case .ready(let sealed) = answer else { throw .malformed("not ready") }
      report = sealed
    } catch .wouldBlock {
      if let deadline = successorDeadline, .now >= deadline {
        startFailed("it was not ready in time")
      }
      return
    } catch .closed {
      successor = nil
      // It ends by itself, with a final message.
      let status =
        WorkerProcess.reap(worker.pid, within: .seconds(1))
        ?? end(worker, patience: .milliseconds(100))
      let cause = status?.description ?? "no exit status"
      return startFailed("\(cause) before it was ready: \(worker.readComplaints())")
    } catch {
      return startFailed("\(error)")
    }
    backoff.succeeded()
    successor = nil
    if let old = current { retire(old) }
    current = worker
    worker.sharedAtRest = worker.sharedBytes
    let state = JobScheduler<PendingJob>.Slot(pid: worker.pid, residentBytes: worker.measure())
    core.update(slot: index) { $0 = state }
    core.sealed(report)
    core.started(.success(()))
  }

  /// Ends the current worker, which is to be replaced.
  func retire(_ worker: WorkerProcess) {
    current = nil
    core.update(slot: index) { $0.pid = nil }
    core.counters.retired.add()
    core.log.debug(
      "worker retired", fields: ["pid": .int(Int(worker.pid)), "jobs": .int(worker.jobs)])
    _ = end(worker, patience: .zero)
  }

  /// Discards the current worker.
  ///
  /// - Parameters:
  ///   - isOurs: whether the pool discards it without a fault of the worker.
  ///   - hasEnded: whether it closed its connection and is ending by itself. Its exit status is
  ///     then awaited.
  /// - Returns: how it ended; `nil` if that is not known yet.
  @discardableResult
  func lose(
    _ worker: WorkerProcess, reason: String, isOurs: Bool = false, hasEnded: Bool = false
  ) -> WorkerEnd? {
    current = nil
    core.update(slot: index) { $0.isBusy = false }
    placeLoops()
    var cause = hasEnded ? WorkerProcess.reap(worker.pid, within: .seconds(1)) : nil
    // A worker that closed its connection and runs is killed here, which is no sign of scarce
    // memory.
    let isAlive = hasEnded && cause == nil
    if cause == nil { cause = end(worker, patience: .milliseconds(100)) }
    let lastWords = worker.readComplaints()
    cause?.lastWords = lastWords
    core.update(slot: index) { $0 = .init() }
    let fields: KeyValuePairs<String, LogValue> = [
      "pid": .int(Int(worker.pid)), "reason": .string(reason),
      "end": .string(cause?.description ?? "not yet"), "stderr": .string(lastWords),
    ]
    if isOurs {
      core.log.debug("worker discarded", fields: fields)
    } else {
      core.log.warning("worker lost", fields: fields)
    }
    return isAlive ? nil : cause
  }

  /// Kills a worker. Returns how it ended; if it has not ended within `patience`, it is reaped
  /// later.
  private func end(_ worker: WorkerProcess, patience: Duration) -> WorkerEnd? {
    worker.kill()
    let cause = WorkerProcess.reap(worker.pid, within: patience)
    if cause == nil { ending.append(worker.pid) }
    return cause
  }

  private func leave() {
    placeLoops()
    for worker in [current, successor].compactMap(\.self) { _ = end(worker, patience: .zero) }
    current = nil
    successor = nil
    // A killed process ends at once, unless the kernel is stuck.
    for pid in ending where WorkerProcess.reap(pid, within: .seconds(2)) == nil {
      core.log.error("a killed worker did not exit", fields: ["pid": .int(Int(pid))])
    }
    core.leave(slot: index)
  }

  // MARK: What a worker that was taken over could use beyond its limits

  /// How often a worker is looked at.
  static var watchPause: Duration { .seconds(1) }
  /// The processor time that a worker without a job has, to give memory back, which takes 0.3 ms a
  /// MiB, and more under a sanitizer.
  private static func restTime(of worker: WorkerProcess) -> Duration {
    .milliseconds(500 + worker.lastResidentBytes >> 20)
  }
  /// Shared memory beyond the limit of private memory and that of a new worker: sources.
  private static var sharedSlack: Int { 256 << 20 }

  /// Waits for the signal, the current worker and its successor. Ends the current worker if it
  /// works without a job.
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

/// A back-off that doubles with each failed start, from 100 ms to 5 s. A successful start resets
/// it.
struct RespawnBackoff {
  /// Failed starts in a row after which jobs are refused. Until then, in about 0.7 s, a killed
  /// start is an accident.
  private static let patience = 4
  private static let pauses = Backoff(.milliseconds(100), longest: .seconds(5))

  private var failures = 0
  /// The earliest time of the next attempt; `nil` for now.
  private(set) var notBefore: ContinuousClock.Instant?

  mutating func failed(at now: ContinuousClock.Instant) {
    notBefore = now + Self.pauses.pause(after: failures)
    failures += 1
  }

  mutating func succeeded() { self = RespawnBackoff() }

  /// Whether starting is given up for now: jobs fail until an attempt succeeds.
  var isExhausted: Bool { failures >= Self.patience }

  func allows(_ now: ContinuousClock.Instant) -> Bool { notBefore.map { now >= $0 } ?? true }
}
