// JobExchange: one job with a worker: sent, waited for, checked, tried once more if the worker died.

import Glibc
import ImagingWire
import Model
import Telemetry

extension WorkerSlot {
  /// How it went.
  private enum Outcome {
    /// The worker answered.
    case answered(Result<ProcessedImage, ImageError>)
    /// The worker was dead before it got the job.
    case unsent(String)
    /// The worker died of the job, or said what makes no sense.
    case lost(String)
    /// The job took too long.
    case late
    /// Nobody wants it any more, and the worker goes on with it.
    case abandoned
    /// The pool ends.
    case stopped
  }

  /// Does a job and answers its caller.
  func perform(_ id: UInt64, _ pending: PendingJob) {
    let startedAt = ContinuousClock.now
    var deaths = 0
    // Two deaths are the picture's fault. Workers that were dead before are not, but there is an end to those too.
    for _ in 0..<4 {
      guard let worker = current ?? replacement(for: id) else {
        return core.finish(id, .failure(endedEarly(id) ?? .internal(detail: "no worker starts")))
      }
      switch exchange(id, pending.job, with: worker) {
      case .answered(var result):
        if case .success(let image) = result {
          result = .success(image.adding(queue: pending.submittedAt.duration(to: startedAt)))
        }
        core.latency.record(startedAt.duration(to: .now))
        tidy(worker)
        return core.finish(id, result)
      case .unsent(let reason):
        lose(worker, reason)
      case .lost(let reason):
        core.lost.add()
        lose(worker, reason)
        deaths += 1
        if deaths == 2 {
          return core.finish(id, .failure(.undecodable(detail: "two workers died: \(reason)")))
        }
      case .late:
        core.lost.add()
        lose(worker, "no answer within the deadline of \(configuration.jobDeadline)")
        return core.finish(id, .failure(.deadlineExceeded))
      case .abandoned:
        lose(worker, "cancelled", isOurs: true)
        return core.finish(id, .failure(.cancelled))
      case .stopped:
        lose(worker, "stopped", isOurs: true)
        return core.finish(id, .failure(.draining))
      }
    }
    core.finish(id, .failure(.internal(detail: "workers end before they get a job")))
  }

  /// After a job: reads what there is to know of the worker, cheaply.
  private func tidy(_ worker: WorkerProcess) {
    let complaint = worker.readComplaints()
    if !complaint.isEmpty { core.log.debug("worker's stderr", ["text": .string(complaint)]) }
    let residentBytes = worker.measure()
    core.update(slot: index) {
      $0.residentBytes = residentBytes
      $0.isBusy = false
    }
  }

  /// A fresh worker for a job whose own has died; `nil` if none starts, or nobody waits for it any more.
  private func replacement(for id: UInt64) -> WorkerProcess? {
    if successor == nil { start() }
    while current == nil, let worker = successor, endedEarly(id) == nil {
      let ready = wait(
        for: [signal.descriptor, worker.socket.descriptor],
        until: [successorDeadline, core.stopAt].compactMap(\.self).min())
      if ready[0] { signal.reset() }
      lookAtSuccessor()
    }
    return current
  }

  /// Why a job should not be gone on with.
  private func endedEarly(_ id: UInt64) -> ImageError? {
    let orders = core.orders(for: id)
    if orders.isAbandoned { return .cancelled }
    return orders.stopAt.map { .now >= $0 } == true ? .draining : nil
  }

  private func exchange(
    _ id: UInt64, _ job: ImageJob, with worker: WorkerProcess
  ) -> Outcome {
    let message = JobMessage(
      id: id, transform: job.transform, density: job.density, limits: configuration.limits,
      offset: job.file.offset, count: job.file.count, overlay: OverlayMessage(job))
    configuration.willSend?(worker.pid)
    do throws(WireError) {
      try worker.send(message, source: job.file, overlay: job.overlay?.file)
    } catch {
      return .unsent("\(error)")
    }
    core.update(slot: index) { $0.isBusy = true }

    let deadline = ContinuousClock.now + configuration.jobDeadline
    var abandonedAt: ContinuousClock.Instant?
    while true {
      let orders = core.orders(for: id)
      var (until, outcome) = (deadline, Outcome.late)
      if orders.isAbandoned {
        let since = abandonedAt ?? .now
        abandonedAt = since
        if since + configuration.cancelGrace < until {
          (until, outcome) = (since + configuration.cancelGrace, .abandoned)
        }
      }
      if let stopAt = orders.stopAt, stopAt < until { (until, outcome) = (stopAt, .stopped) }

      let ready = wait(for: [worker.socket.descriptor, signal.descriptor], until: until)
      if ready[1] { signal.reset() }
      if ready[0] {
        do throws(WireError) {
          return .answered(
            try JobAnswer.read(
              worker.socket.receive(), for: id, atMost: configuration.maximumResultBytes ?? .max))
        } catch .wouldBlock {
          continue
        } catch {
          return .lost("\(error)")
        }
      }
      if .now >= until { return outcome }
    }
  }
}

extension OverlayMessage {
  /// The watermark of a job; `nil`: it has none.
  fileprivate init?(_ job: ImageJob) {
    guard let overlay = job.overlay else { return nil }
    self.init(
      offset: overlay.file.offset, count: overlay.file.count, density: overlay.density,
      placement: job.transform.watermark?.placement ?? WatermarkPlacement())
  }
}

extension ProcessedImage {
  fileprivate func adding(queue: Duration) -> ProcessedImage {
    var timings = timings
    timings.queue = queue
    return ProcessedImage(
      bytes: bytes, format: format, size: size, frames: frames, density: density,
      scaledDownFrom: scaledDownFrom, quality: quality, digest: digest, timings: timings)
  }
}
