// WorkerSlot: keeps one imaging worker running, gives it jobs and replaces it.

import Glibc
import ImagingWire
import Model
import Platform
import Telemetry

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
  private var backoff = RespawnBackoff()
  /// Killed processes that are not reaped yet.
  private var ending: [pid_t] = []

  var configuration: ImagerPoolConfiguration { core.configuration }

  init(index: Int, core: PoolCore, signal: WakeSignal) {
    (self.index, self.core, self.signal) = (index, core, signal)
  }

  /// Runs until the pool stops.
  func run() {
    while true {
      tendWorkers()
      switch core.next(slot: index, isReady: current != nil) {
      case .job(let id, let pending): perform(id, pending)
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
      || worker.lastResidentBytes > configuration.retireAboveResidentBytes
  }

  /// Starts a successor.
  func start() {
    do throws(ImagerStartError) {
      let worker = try WorkerProcess(configuration)
      successor = worker
      core.log.debug("worker started", ["pid": .int(Int(worker.pid))])
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
    if current == nil { core.update(slot: index) { $0.fault = "\(error)" } }
  }

  /// Waits for a job, a deadline, or an event of a worker.
  private func rest() {
    var deadlines = [core.stopAt, successorDeadline]
    if successor == nil && current.map(isDue) ?? true { deadlines.append(backoff.notBefore) }
    if !ending.isEmpty { deadlines.append(.now + .milliseconds(10)) }
    let ready = Poll.wait(
      for: [
        signal.descriptor, current?.socket.descriptor ?? -1, successor?.socket.descriptor ?? -1,
      ], until: deadlines.compactMap(\.self).min())
    if ready[0] { signal.reset() }
    // A worker without a job has nothing to send.
    if ready[1], let worker = current {
      if worker.jobs == 0 { backoff.failed(at: .now) }
      lose(worker, "it ended, or spoke, without a job")
    }
  }

  var successorDeadline: ContinuousClock.Instant? {
    successor.map { $0.startedAt + configuration.startDeadline }
  }

  /// Makes the successor the current worker when it is ready. Discards it if it fails.
  func lookAtSuccessor() {
    guard let worker = successor else { return }
    do throws(WireError) {
      var message = try worker.socket.receive()
      let answer = try AnswerMessage(decoding: message.bytes)
      guard answer == .ready, message.takeDescriptor() == nil else {
        throw .malformed("not ready")
      }
    } catch .wouldBlock {
      if let deadline = successorDeadline, .now >= deadline { startFailed("it took too long") }
      return
    } catch .closed {
      successor = nil
      let cause = end(worker, patience: .milliseconds(100))?.description ?? "no exit status"
      return startFailed("\(cause) before it was ready: \(worker.readComplaints())")
    } catch {
      return startFailed("\(error)")
    }
    backoff.succeeded()
    successor = nil
    if let old = current {
      core.retired.add()
      core.log.debug("worker retired", ["pid": .int(Int(old.pid)), "jobs": .int(old.jobs)])
      _ = end(old, patience: .zero)
    }
    current = worker
    let state = JobScheduler<PendingJob>.Slot(pid: worker.pid, residentBytes: worker.measure())
    core.update(slot: index) { $0 = state }
    core.started(.success(()))
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
    _ worker: WorkerProcess, _ reason: String, isOurs: Bool = false, hasEnded: Bool = false
  ) -> WorkerEnd? {
    current = nil
    var cause = hasEnded ? WorkerProcess.reap(worker.pid, within: .seconds(1)) : nil
    if cause == nil { cause = end(worker, patience: .milliseconds(100)) }
    let lastWords = worker.readComplaints()
    cause?.lastWords = lastWords
    core.update(slot: index) { $0 = .init() }
    let fields: KeyValuePairs<String, LogValue> = [
      "pid": .int(Int(worker.pid)), "reason": .string(reason),
      "end": .string(cause?.description ?? "not yet"), "stderr": .string(lastWords),
    ]
    if isOurs {
      core.log.debug("worker given up", fields)
    } else {
      core.log.warning("worker lost", fields)
    }
    return cause
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
    for worker in [current, successor].compactMap(\.self) { _ = end(worker, patience: .zero) }
    (current, successor) = (nil, nil)
    // A killed process ends at once, unless the kernel is stuck.
    for pid in ending where WorkerProcess.reap(pid, within: .seconds(2)) == nil {
      core.log.error("a killed worker does not end", ["pid": .int(Int(pid))])
    }
    core.leave(slot: index)
  }
}
