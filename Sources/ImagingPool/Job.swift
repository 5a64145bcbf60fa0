// Job: sends one job to a worker, waits for the answer, and retries if the worker dies.

import Core
import Glibc

/// A job and the continuation of its caller.
struct PendingJob: Sendable {
  let job: ImageJob
  let submittedAt: ContinuousClock.Instant
  /// What the time of workers is charged to; `nil` if no client caused the job.
  let account: (any ImagingAccount)?
  let caller: CheckedContinuation<Result<ProcessedImage, ImageError>, Never>
}

extension WorkerSlot {
  /// All cores of the machine: an upper bound of those that a worker may get while its job runs.
  private static let cores = max(sysconf(CInt(_SC_NPROCESSORS_ONLN)), 1)

  /// The outcome of one attempt.
  private enum Outcome {
    /// The worker answered.
    case answered(Result<ProcessedImage, ImageError>)
    /// The worker did not begin the job because it is expensive.
    case takesLong(bytes: Int)
    /// The worker was dead before it got the job.
    case unsent(String)
    /// The worker died with the job.
    case died
    /// The worker's answer is invalid.
    case confused(String)
    /// The job exceeded its deadline.
    case late
    /// The job exceeded this processor time.
    case costly(Duration)
    /// The job takes longer than estimated, and others need its slot.
    case givesWay
    /// The job was cancelled, and the worker did not finish it within `cancelGrace`.
    case abandoned
    /// The pool stops.
    case stopped
  }

  /// Performs a job and answers its caller, or queues an expensive job again.
  func perform(_ id: UInt64, job pending: PendingJob) {
    let start = ContinuousClock.now
    if let result = result(of: id, pending) {
      core.finish(id, with: result, took: start.duration(to: .now))
    }
    core.releaseRoom(slot: index)
    // After the answer, so that no caller waits for it.
    if let worker = current { tidy(worker) }
  }

  /// - Returns: `nil` if the job is queued again.
  private func result(
    of id: UInt64, _ pending: PendingJob
  ) -> Result<ProcessedImage, ImageError>? {
    let startedAt = ContinuousClock.now
    var deaths = JobDeaths(workerMemory: configuration.maximumWorkerMemory)
    var hasMissedMemory = false
    // The last worker that got this job, perhaps twice as it is expensive, and had no job before.
    var freshWorker: pid_t?
    // A worker that was dead before it got the job is no evidence against the job, but such
    // attempts are limited too.
    for _ in 0..<6 {
      if let worker = current, !worker.mayTake(pending.job) { retire(worker) }
      guard let worker = current ?? replacement(for: id) else {
        return .failure(endedEarly(id) ?? .internal(detail: "no worker starts"))
      }
      if worker.jobs == 0 { freshWorker = worker.pid }
      let isFresh = freshWorker == worker.pid
      let isHeld = hold(worker, for: id, pending.job)
      let sentAt = ContinuousClock.now
      let outcome = exchange(id, job: pending.job, with: worker)
      // Whatever the outcome, and before the caller learns it.
      pending.account?.charge(sentAt.duration(to: .now))
      switch outcome {
      case .answered(let result) where isHeld && result.mayLackMemory && !pending.job.isBackground:
        let ending = endedEarly(id)
        guard ending == nil, takesWholeMemory(id) else {
          core.update(slot: index) { $0.isBusy = false }
          return ending.map { .failure($0) }
        }
      case .answered(.failure(.outOfMemory)) where !isFresh && !hasMissedMemory:
        // A worker keeps memory of its earlier jobs that a new one does not have.
        hasMissedMemory = true
        core.update(slot: index) { $0.isBusy = false }
        retire(worker)
      case .answered(var result):
        if case .success(let image) = result {
          result = .success(image.adding(queue: pending.submittedAt.duration(to: startedAt)))
        } else if case .failure(.outOfMemory(let detail)) = result, isFresh {
          result = .failure(deaths.failure(ofMemory: detail, isHeld: isHeld))
        }
        core.counters.latency.record(startedAt.duration(to: .now))
        core.update(slot: index) { $0.isBusy = false }
        return result
      case .takesLong(let bytes):
        guard core.takesLong(id, bytes: bytes) else {
          core.update(slot: index) { $0.isBusy = false }
          return nil
        }
      case .unsent(let reason):
        lose(worker, reason: reason)
      case .died:
        core.counters.lost.add()
        let end = lose(worker, reason: "it ended with a job", hasEnded: true)
        // A worker that only closed its connection lacks no memory.
        if isHeld, let end, end.cause != .killed, !pending.job.isBackground {
          if let ending = endedEarly(id) { return .failure(ending) }
          guard takesWholeMemory(id) else { return nil }
          continue
        }
        switch deaths.add(end, isFresh: isFresh, isHeld: isHeld) {
        case .again: continue
        // No client waits for a background job, so none may wait for its sake either.
        case .againAlone where pending.job.isBackground:
          return .failure(.outOfMemory(detail: "a background job had no room beside others"))
        case .againAlone: if let failure = waitForRoom(id) { return .failure(failure) }
        case .giveUp(let failure): return .failure(failure)
        }
      case .confused(let reason):
        core.counters.lost.add()
        lose(worker, reason: reason)
        if case .giveUp(let failure) = deaths.add(nil, isFresh: isFresh, isHeld: isHeld) {
          return .failure(failure)
        }
      case .late:
        core.counters.lost.add()
        lose(worker, reason: "no answer within the deadline of \(configuration.jobDeadline)")
        return .failure(.imagingTimeout)
      case .costly(let limit):
        core.counters.lost.add()
        lose(worker, reason: "more than \(limit) of processor time")
        return .failure(tooCostly(pending.job, limit))
      case .givesWay:
        lose(worker, reason: "its job takes longer than estimated, and others wait", isOurs: true)
        return core.giveWay(id) ? nil : .failure(.cancelled)
      case .abandoned:
        lose(worker, reason: "cancelled", isOurs: true)
        return .failure(.cancelled)
      case .stopped:
        lose(worker, reason: "stopped", isOurs: true)
        return .failure(.draining)
      }
    }
    return .failure(.internal(detail: "workers end before they get a job"))
  }

  /// Returns the error for a job that took more processor time than it may. It blames the source if
  /// the job only reduces it, or if another variant of it was as costly, otherwise the variant.
  private func tooCostly(_ job: ImageJob, _ limit: Duration) -> ImageError {
    let error = ImageError.tooCostly(
      reason: "more than \(limit) of processor time", key: ImagingLimits.timeKey)
    // A vector may be drawn smaller.
    let isReduced = job.transform.isPlainReduction && !job.mayDrawVector
    return isReduced || core.blamesSource(job.source, for: job.transform)
      ? error : .ofVariant(error)
  }

  /// Waits until no other worker has a job, so that this job can use all memory.
  ///
  /// - Returns: the reason to stop waiting; `nil` if the job may run.
  private func waitForRoom(_ id: UInt64) -> ImageError? {
    let deadline = ContinuousClock.now + configuration.jobDeadline
    while !core.claimRoom(slot: index) {
      placeLoops()
      if let ending = endedEarly(id) { return ending }
      guard .now < deadline else { return .outOfMemory(detail: "other jobs left no room in time") }
      let until = [deadline, core.stopAt].compactMap(\.self).min()
      if Poll.wait(for: [signal.descriptor], until: until)[0] { signal.reset() }
    }
    return nil
  }

  /// Collects the worker's standard error and its memory use after a job.
  private func tidy(_ worker: WorkerProcess) {
    configuration.willTidy?(worker.pid)
    let complaint = worker.readComplaints()
    if !complaint.isEmpty {
      core.log.debug("worker's stderr", fields: ["text": .string(complaint)])
    }
    let residentBytes = worker.measure()
    core.update(slot: index) { $0.residentBytes = residentBytes }
  }

  /// Moves the worker to the cores that event loops leave.
  private func confine(_ worker: WorkerProcess) {
    guard let reserve = core.reserve else { return }
    let share = reserve.share()
    do throws(SystemError) {
      try worker.confine(to: share)
      // More jobs than cores would wait for each other, and the loops for them.
      core.setWidth(share.reserved > 0 ? share.cores.numbers.count : configuration.workers)
    } catch {
      fail(reserve, "a worker cannot be moved", error)
    }
  }

  /// Moves the event loops to the cores that are reserved for them, or frees them. Call whenever
  /// the slot begins to wait.
  func placeLoops() {
    guard let reserve = core.reserve else { return }
    do throws(SystemError) {
      try reserve.placeLoops(running: { core.read { $0.busyCount } })
    } catch {
      fail(reserve, "they cannot be moved", error)
    }
  }

  private func fail(_ reserve: CoreReserve, _ what: StaticString, _ error: SystemError) {
    core.setWidth(configuration.workers)
    guard reserve.fail() else { return }
    core.log.warning(
      "workers leave no cores to event loops: \(what)", fields: ["reason": .string("\(error)")])
  }

  /// Starts a worker for a job whose worker died, again if it does not start. Returns `nil` if
  /// several in a row do not start, or if the job was cancelled.
  private func replacement(for id: UInt64) -> WorkerProcess? {
    while current == nil, endedEarly(id) == nil {
      placeLoops()
      if successor == nil, backoff.allows(.now) { start() }
      guard successor != nil || !backoff.isExhausted else { return nil }
      let ready = Poll.wait(
        for: [signal.descriptor, successor?.socket.descriptor ?? -1],
        until: [successor == nil ? backoff.notBefore : successorDeadline, core.stopAt]
          .compactMap(\.self).min())
      if ready[0] { signal.reset() }
      lookAtSuccessor()
    }
    return current
  }

  /// Returns why the job should not continue; `nil` if it should.
  private func endedEarly(_ id: UInt64) -> ImageError? {
    let orders = core.read { $0.orders(for: id) }
    if orders.isAbandoned { return .cancelled }
    return orders.stopAt.map { .now >= $0 } == true ? .draining : nil
  }

  private func exchange(
    _ id: UInt64, job: ImageJob, with worker: WorkerProcess
  ) -> Outcome {
    let admitted = core.read { $0.bytesOfLong(id) }
    // Also if only the memory is unknown.
    let isQuickOnly = (admitted ?? 0) == 0
    var mayOverrun = admitted == nil && !job.isBackground
    // Moves the worker first: the number of threads follows its cores.
    confine(worker)
    var limits = job.hasMoreEffort ? configuration.limits.withMoreEffort : configuration.limits
    limits.maximumThreads = core.threads(of: job)
    let message = JobMessage(
      job, id: id, limits: limits, isQuickOnly: isQuickOnly, faces: core.faces(of: job))
    configuration.willSend?(worker.pid)
    do throws(WireError) {
      try worker.send(message, of: job)
    } catch {
      return .unsent("\(error)")
    }
    defer { worker.emptyResults() }
    core.update(slot: index) { $0.isBusy = true }
    placeLoops()
    let deadline = ContinuousClock.now + configuration.jobDeadline
    // How long a vector takes is hardly known before it is drawn.
    let processorTime = configuration.processorTime / (job.mayDrawVector ? 2 : 1)
    let timeBefore = worker.processorTime ?? .zero
    var abandonedAt: ContinuousClock.Instant?
    while true {
      let orders = core.read { $0.orders(for: id) }
      var until = deadline
      var outcome = Outcome.late
      if orders.givesWay { return .givesWay }
      let timeUsed = (worker.processorTime ?? .zero) - timeBefore
      var timeLeft = processorTime - timeUsed
      if timeLeft <= .zero { return .costly(processorTime) }
      if mayOverrun {
        guard timeUsed < configuration.quickTime else {
          mayOverrun = false
          core.overran(id, job.source)
          continue
        }
        timeLeft = min(timeLeft, configuration.quickTime - timeUsed)
      }
      // The earliest time at which the job can exceed its limit, using all cores.
      let timeIsUp = ContinuousClock.now + timeLeft / Self.cores
      if orders.isAbandoned {
        let since = abandonedAt ?? .now
        abandonedAt = since
        if since + configuration.cancelGrace < until {
          until = since + configuration.cancelGrace
          outcome = .abandoned
        }
      }
      if let stopAt = orders.stopAt, stopAt < until {
        until = stopAt
        outcome = .stopped
      }

      let pause = core.reserve == nil ? Self.watchPause : CoreReserve.pause
      let nextMeasurement = ContinuousClock.now + pause
      let ready = Poll.wait(
        for: [worker.socket.descriptor, signal.descriptor],
        until: min(until, timeIsUp, nextMeasurement))
      if ready[1] { signal.reset() }
      confine(worker)
      placeLoops()
      if ready[0] {
        do throws(WireError) {
          let answer = try JobAnswer.read(
            worker.socket.receive(), for: id, transform: job.transform,
            sourceBytes: job.file.count + (job.overlay?.file.count ?? 0), source: job.file,
            limits: limits, from: worker.results, atMost: configuration.maximumResultBytes ?? .max,
            into: core.storage)
          switch answer {
          case .ended(let result):
            let time = (worker.processorTime ?? timeBefore) - timeBefore
            if message.faces == nil, let faces = (try? result.get())?.report.faces {
              core.keep(faces, of: job)
            }
            return .answered(result.map { $0.adding(processorTime: time) })
          case .takesLong(let bytes):
            guard isQuickOnly else { throw WireError.malformed("it takes long, twice") }
            // 0 says that the memory is unknown.
            return .takesLong(bytes: max(bytes, 1))
          }
        } catch .wouldBlock {
          continue
        } catch .closed {
          return .died
        } catch {
          return .confused("\(error)")
        }
      }
      if let excess = excessMemory(of: worker) { return .confused(excess) }
      if .now >= until { return outcome }
    }
  }

  // MARK: Memory

  /// Lowers the worker's limits of memory and of its result to what the job was admitted with, or
  /// lifts them for a job that was admitted with the whole memory of a worker. A machine that
  /// refuses this has estimates and no limit for them.
  ///
  /// - Returns: whether the worker has less than its whole memory for the job.
  func hold(_ worker: WorkerProcess, for id: UInt64, _ job: ImageJob) -> Bool {
    let bytes = admittedBytes(id).flatMap { job.mayFindColours(configuration.limits) ? nil : $0 }
    do throws(SystemError) {
      try worker.holdMemory(
        to: bytes.map { $0 + configuration.memorySlack },
        resultBytes: ImagerPoolConfiguration.resultBytes(ofMemory: bytes ?? 0))
    } catch {
      core.log.debug("a worker's memory limit stays", fields: ["reason": .string("\(error)")])
    }
    return worker.isHeld
  }

  /// The memory that the job may take, in bytes; `nil` for all that its worker can have.
  ///
  /// Each worker has a part of its own. An expensive job has what was estimated, if that is more.
  private func admittedBytes(_ id: UInt64) -> Int? {
    guard let whole = configuration.maximumWorkerMemory else { return nil }
    let part = configuration.limits.maximumQuickBytes
    let admitted = max(core.read({ $0.bytesOfLong(id) }) ?? 0, part)
    return admitted < whole ? admitted : nil
  }

  /// Admits a job that needs more memory than estimated with the whole memory of a worker.
  ///
  /// - Returns: whether the job continues here; otherwise it is queued again.
  func takesWholeMemory(_ id: UInt64) -> Bool {
    core.counters.underestimated.add()
    return core.takesLong(id, bytes: configuration.maximumWorkerMemory ?? .max)
  }
}

extension ImageJob {
  /// Whether its source or its watermark may be a vector.
  fileprivate var mayDrawVector: Bool {
    [file, overlay?.file].compactMap(\.self).contains(where: SourceHead.mayBeVector)
  }

  /// Whether libimagequant finds the colours of the result, as far as that is known: for a GIF, and
  /// for a PNG of a source with a palette. With less memory it finds other colours and reports no
  /// error, so these jobs have the whole memory of a worker.
  fileprivate func mayFindColours(_ limits: ImagingLimits) -> Bool {
    let format = transform.output.format
    if (format ?? SourceHead.format(of: file)) == .gif { return true }
    return limits.keepsPalettes && (format ?? .png) == .png && SourceHead.mayHavePalette(file)
  }
}

extension Result<ProcessedImage, ImageError> {
  /// Whether missing memory may be the cause. Some decoders and encoders report a failed allocation
  /// as any other failure, tolerant ones as damage, and libimagequant not at all.
  var mayLackMemory: Bool {
    switch self {
    case .success(let image): image.report.isDamaged || image.rendered?.format == .gif
    case .failure(let error): error.mayLackMemory
    }
  }
}

extension ImageError {
  fileprivate var mayLackMemory: Bool {
    switch self {
    case .outOfMemory, .undecodable, .internal: true
    case .watermark(let cause), .ofVariant(let cause): cause.mayLackMemory
    default: false
    }
  }
}

extension ProcessedImage {
  fileprivate func adding(processorTime: Duration) -> ProcessedImage {
    var image = self
    image.processorTime = processorTime
    return image
  }

  fileprivate func adding(queue: Duration) -> ProcessedImage {
    var image = self
    image.report.timings.queue = queue
    return image
  }
}
