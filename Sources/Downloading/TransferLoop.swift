// TransferLoop: what the transfer thread does: commands in, transfers run, answers out.

import CCurl
import Glibc
import Model
import Telemetry

/// Runs all transfers on one thread, which alone touches anything in here.
final class TransferLoop {
  private struct Running {
    let transfer: Transfer
    let since: ContinuousClock.Instant
  }

  private let rules: TransferRules
  private let mailbox: Mailbox
  private let multi: MultiHandle
  private let counters: DownloadCounters
  private let log: Log
  private let clock = ContinuousClock()

  private var queue: DownloadQueue
  private let budget: BodyBudget
  /// Loads that have not been answered, waiting or running.
  private var loads: [DownloadQueue.ID: Load] = [:]
  private var running: [DownloadQueue.ID: Running] = [:]
  private var idsByHandle: [UnsafeMutableRawPointer: DownloadQueue.ID] = [:]
  /// Answers of this turn: given when the figures already tell of them.
  private var answers: [(load: Load, result: Result<Download, ImageError>)] = []

  init(
    rules: TransferRules, mailbox: Mailbox, multi: MultiHandle, counters: DownloadCounters, log: Log
  ) {
    (self.rules, self.mailbox, self.multi) = (rules, mailbox, multi)
    (self.counters, self.log) = (counters, log)
    let configuration = rules.configuration
    queue = DownloadQueue(
      limit: configuration.limit, limitPerHost: configuration.limitPerHost,
      queueLimit: configuration.queueLimit, queueTimeout: configuration.queueTimeout)
    budget = BodyBudget(limit: configuration.maximumBytesInFlight)
  }

  /// Returns when the mailbox is closed and every load is answered.
  func run() {
    while true {
      let (commands, isClosed) = mailbox.take()
      for command in commands {
        switch command {
        case .load(let load): add(load)
        case .cancel(let id): finish(id, .failure(.cancelled))
        }
      }
      if isClosed {
        for id in loads.keys.sorted() { end(id, .failure(.draining)) }
        giveAnswers()
        return
      }
      do throws(ImageError) {
        for (easy, code) in try multi.perform() {
          if let id = idsByHandle[easy] { hopEnded(id, code) }
        }
        apply(queue.expire(now: clock.now))
        giveAnswers()
        try multi.wait(atMost: queue.nextDeadline.map { $0 - clock.now } ?? .seconds(60))
      } catch {
        // curl is out of memory or at odds with itself: those on their way cannot be helped, others may be.
        log.error("transfers given up", ["detail": .string(error.logDetail ?? error.code)])
        for id in running.keys.sorted() { finish(id, .failure(error)) }
        giveAnswers()
        // What fails at once each time is not to keep a core busy.
        usleep(50_000)
      }
    }
  }

  private func add(_ load: Load) {
    loads[load.id] = load
    apply(queue.add(load.id, host: load.target.hostAndPort, now: load.arrived))
  }

  private func apply(_ actions: [DownloadQueue.Action]) {
    var rest = actions[...]
    while let action = rest.popFirst() {
      switch action {
      case .start(let id):
        do throws(ImageError) {
          try start(id)
        } catch {
          end(id, .failure(error))
          rest += queue.remove(id)
        }
      case .refuse(let id), .expire(let id):
        end(id, .failure(.overloaded(queue: "download", retryAfter: retryAfter)))
      }
    }
  }

  /// Seconds until those waiting now have had their turn, if a transfer takes one; 1–30.
  private var retryAfter: Int {
    min(max(queue.waitingCount / max(rules.configuration.limit, 1), 1), 30)
  }

  private func start(_ id: DownloadQueue.ID) throws(ImageError) {
    guard let load = loads[id] else { return }
    let now = clock.now
    let transfer = try Transfer(
      load.target, rules: rules, budget: budget, queuedFor: now - load.arrived, now: now)
    try multi.add(transfer.handle)
    running[id] = Running(transfer: transfer, since: now)
    idsByHandle[transfer.handle] = id
  }

  private func hopEnded(_ id: DownloadQueue.ID, _ code: CURLcode) {
    guard let transfer = running[id]?.transfer else { return }
    multi.remove(transfer.handle)
    switch transfer.hopEnded(code, now: clock.now) {
    case .ended(let result):
      finish(id, result)
    case .nextHop:
      do throws(ImageError) {
        try multi.add(transfer.handle)
      } catch {
        finish(id, .failure(error))
      }
    }
  }

  /// Answers a load, frees its place, and lets the next ones begin.
  private func finish(_ id: DownloadQueue.ID, _ result: Result<Download, ImageError>) {
    end(id, result)
    apply(queue.remove(id))
  }

  /// Takes a load and its transfer out of the tables; whoever finds it there answers it.
  private func end(_ id: DownloadQueue.ID, _ result: Result<Download, ImageError>) {
    guard let load = loads.removeValue(forKey: id) else { return }
    var duration: Duration?
    var bytes = 0
    if let ended = running.removeValue(forKey: id) {
      // Before the transfer goes: curl may call it until its handle is taken back.
      multi.remove(ended.transfer.handle)
      idsByHandle[ended.transfer.handle] = nil
      duration = clock.now - ended.since
      bytes = ended.transfer.bytes
    }
    counters.count(result, bytes: bytes, duration: duration)
    answers.append((load, result))
    logEnd(of: load, result, bytes: bytes, duration: duration)
  }

  private func giveAnswers() {
    counters.publish(running: queue.runningCount, waiting: queue.waitingCount)
    for (load, result) in answers { load.answer(result) }
    answers = []
  }

  /// Without the query, where signed URLs have their secrets.
  private func logEnd(
    of load: Load, _ result: Result<Download, ImageError>, bytes: Int, duration: Duration?
  ) {
    let outcome =
      switch result {
      case .success: "ok"
      case .failure(let error): error.code
      }
    log.debug(
      "download",
      [
        "host": .string(load.target.hostAndPort), "path": .string(load.target.url.path),
        "outcome": .string(outcome), "bytes": .int(bytes),
        "duration_ms": .milliseconds(duration ?? .zero),
      ])
  }
}
