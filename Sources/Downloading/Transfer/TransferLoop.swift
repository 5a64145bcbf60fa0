// TransferLoop: the loop of the transfer thread: commands, transfers, results.

import CCurl
import Glibc
import Model
import Telemetry

/// Runs all transfers on one thread. All members belong to that thread.
final class TransferLoop {
  private struct Running {
    let transfer: Transfer
    let since: ContinuousClock.Instant
    /// When the current hop's host was asked.
    var asked: ContinuousClock.Instant
  }

  private let rules: TransferRules
  private let mailbox: Mailbox
  private let multi: MultiHandle
  private let verifier: BodyVerifier
  private let counters: DownloadCounters
  private let board: DownloadMonitor
  private let log: Log
  private let clock = ContinuousClock()

  private var queue: DownloadQueue
  private var breaker: CircuitBreaker
  private let budget: BodyBudget
  private let alarm = TransferAlarm()
  /// Loads without a result, waiting or running.
  private var loads: [DownloadQueue.ID: PendingDownload] = [:]
  private var running: [DownloadQueue.ID: Running] = [:]
  private var idsByHandle: [UnsafeMutableRawPointer: DownloadQueue.ID] = [:]
  /// Bodies of running loads whose digests are being verified.
  private var unverified: [DownloadQueue.ID: Download] = [:]
  /// Running loads that were reported to the queue as silent.
  private var silent: Set<DownloadQueue.ID> = []
  /// Results of this iteration. Delivered after the figures are updated.
  private var answers: [(load: PendingDownload, result: Result<LoadResult, ImageError>)] = []

  init(
    rules: TransferRules, mailbox: Mailbox, multi: MultiHandle, verifier: BodyVerifier,
    counters: DownloadCounters, board: DownloadMonitor, log: Log
  ) {
    self.rules = rules
    self.mailbox = mailbox
    self.multi = multi
    self.verifier = verifier
    self.counters = counters
    self.board = board
    self.log = log
    let configuration = rules.configuration
    queue = DownloadQueue(
      limit: configuration.limit, limitPerHost: configuration.limitPerHost,
      silentLimit: configuration.silentLimit, queueLimit: configuration.queueLimit,
      queueTimeout: configuration.queueTimeout,
      order: configuration.order)
    breaker = CircuitBreaker(
      threshold: configuration.breakerThreshold, openTime: configuration.breakerOpenTime)
    budget = BodyBudget(limit: configuration.maximumBytesInFlight)
  }

  /// Runs until the mailbox is closed and every load has its result.
  func run() {
    while true {
      let (commands, isClosed) = mailbox.take()
      for command in commands { obey(command) }
      if isClosed {
        for id in loads.keys.sorted() { end(id, .failure(.draining)) }
        giveAnswers()
        return
      }
      do throws(ImageError) {
        let ended = try multi.perform()
        hearSilentOnes()
        for (easy, code) in ended {
          if let id = idsByHandle[easy] { hopEnded(id, code) }
        }
        apply(queue.expire(now: clock.now))
        if alarm.rings(at: clock.now) { lookAfterWaits() }
        giveAnswers()
        let next = [queue.nextDeadline, alarm.time].compactMap(\.self).min()
        try multi.wait(atMost: next.map { $0 - clock.now } ?? .seconds(60))
      } catch {
        // curl is out of memory or inconsistent: fail the running transfers; waiting ones may still
        // succeed.
        log.error("transfers given up", ["detail": .string(error.logDetail ?? error.code)])
        for id in running.keys.sorted() { finish(id, .failure(error)) }
        giveAnswers()
        // Avoids a busy loop if curl keeps failing.
        usleep(50_000)
      }
    }
  }

  private func obey(_ command: Mailbox.Command) {
    switch command {
    case .load(let load): add(load)
    case .cancel(let id): finish(id, .failure(.cancelled))
    case .raise(let id):
      if let load = loads[id] { queue.raise(id, to: load.priority.value) }
    case .verified(let id, let mismatch): verified(id, mismatch)
    case .pause: queue.pause()
    case .resume: apply(queue.resume())
    }
  }

  private func add(_ load: PendingDownload) {
    loads[load.id] = load
    board.add(load)
    let host = load.target.hostAndPort
    guard !breaker.refuses(load.id, to: host, now: clock.now) else {
      return end(load.id, .failure(Self.circuitOpen))
    }
    let priority = load.priority.value
    apply(queue.add(load.id, host: host, priority: priority, now: load.arrived))
  }

  private static let circuitOpen = ImageError.sourceUnreachable(
    detail: "circuit open: the host failed time and again")

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

  /// Estimated seconds until the waiting loads have started, at one second per transfer; 1–30.
  private var retryAfter: Int {
    min(max(queue.waitingCount / max(rules.configuration.limit, 1), 1), 30)
  }

  private func start(_ id: DownloadQueue.ID) throws(ImageError) {
    guard let load = loads[id] else { return }
    let now = clock.now
    let transfer = try Transfer(
      load, rules: rules, budget: budget, alarm: alarm, now: now,
      progress: { [board] in board.progress(id, received: $0, expected: $1) })
    guard breaker.admit(id, to: transfer.host, now: now) else { throw Self.circuitOpen }
    running[id] = Running(transfer: transfer, since: now, asked: now)
    board.run(id, at: transfer.host)
    idsByHandle[transfer.handle] = id
    try multi.add(transfer.handle)
    alarm.set(now + rules.configuration.silentAfter)
  }

  private func hopEnded(_ id: DownloadQueue.ID, _ code: CURLcode) {
    guard let transfer = running[id]?.transfer else { return }
    multi.remove(transfer.handle)
    let (host, now) = (transfer.host, clock.now)
    switch transfer.hopEnded(code, now: now) {
    case .ended(let result):
      finish(id, result)
    case .unverified(let download, let digests):
      unverified[id] = download
      verifier.verify(id, download.file, digests)
    case .nextHop:
      apply(queue.answer(id, from: host))
      breaker.end(id, at: host, .success, now: now)
      board.run(id, at: transfer.host)
      guard breaker.admit(id, to: transfer.host, now: now) else {
        return finish(id, .failure(Self.circuitOpen))
      }
      do throws(ImageError) {
        try multi.add(transfer.handle)
        noteAsking(id, now)
      } catch {
        finish(id, .failure(error))
      }
    case .retry:
      // The load keeps its slot, and its circuit breaker waits for the final outcome.
      if transfer.hasAnswer { apply(queue.answer(id, from: host)) }
    }
  }

  private func verified(_ id: DownloadQueue.ID, _ mismatch: String?) {
    guard let download = unverified[id] else { return }
    running[id]?.transfer.verified(isRight: mismatch == nil)
    finish(
      id,
      mismatch.map { .failure(.sourceIncomplete(detail: $0)) } ?? .success(.fetched(download)))
  }

  /// Reports loads that were silent and have responded to the queue.
  private func hearSilentOnes() {
    for id in silent {
      guard let transfer = running[id]?.transfer, transfer.hasAnswer else { continue }
      silent.remove(id)
      apply(queue.answer(id, from: transfer.host))
    }
  }

  /// Starts the silence timer of a load's current hop. Each host gets its own time.
  private func noteAsking(_ id: DownloadQueue.ID, _ now: ContinuousClock.Instant) {
    running[id]?.asked = now
    alarm.set(now + rules.configuration.silentAfter)
  }

  /// Reports silent loads to the queue, so that other loads can start.
  private func noteSilentOnes(_ now: ContinuousClock.Instant) {
    for (id, begun) in running where !begun.transfer.hasAnswer && !silent.contains(id) {
      let time = begun.asked + rules.configuration.silentAfter
      guard time <= now else {
        alarm.set(time)
        continue
      }
      silent.insert(id)
      apply(queue.silence(id))
    }
  }

  /// Fails transfers whose first byte is overdue, and starts the retries that are due.
  private func lookAfterWaits() {
    let now = clock.now
    noteSilentOnes(now)
    for (id, transfer) in running.map({ ($0.key, $0.value.transfer) }).sorted(by: { $0.0 < $1.0 }) {
      switch transfer.wait {
      case .nothing: break
      case .firstByte(let end) where end <= now:
        finish(id, .failure(.sourceTimeout(detail: "no answer yet: first-byte time-out")))
      case .retry(let time, let error) where time <= now:
        retry(id, transfer, after: error, now: now)
      case .firstByte(let time), .retry(let time, _): alarm.set(time)
      }
    }
  }

  private func retry(
    _ id: DownloadQueue.ID, _ transfer: Transfer, after failure: ImageError,
    now: ContinuousClock.Instant
  ) {
    guard breaker.admit(id, to: transfer.host, now: now) else {
      return finish(id, .failure(failure))
    }
    do throws(ImageError) {
      try transfer.retry(now: now)
      try multi.add(transfer.handle)
      noteAsking(id, now)
      counters.retries.add()
    } catch {
      finish(id, .failure(error))
    }
  }

  /// Ends a load, releases its slot, and starts the next ones.
  private func finish(_ id: DownloadQueue.ID, _ result: Result<LoadResult, ImageError>) {
    let transfer = running[id]?.transfer
    let speaker = transfer.flatMap { $0.hasAnswer ? $0.host : nil }
    end(id, result)
    if let speaker { apply(queue.answer(id, from: speaker)) }
    apply(queue.remove(id))
  }

  /// Removes a load and its transfer from the tables and records the result. No effect if the load
  /// has ended.
  private func end(_ id: DownloadQueue.ID, _ result: Result<LoadResult, ImageError>) {
    guard let load = loads.removeValue(forKey: id) else { return }
    var duration: Duration?
    var bytes = 0
    let ended = running.removeValue(forKey: id)
    silent.remove(id)
    unverified[id] = nil
    if let ended {
      // First of all: curl may call the transfer until its handle is removed.
      multi.remove(ended.transfer.handle)
      idsByHandle[ended.transfer.handle] = nil
      duration = clock.now - ended.since
      bytes = ended.transfer.bytes
    }
    counters.count(result, bytes: bytes, duration: duration)
    board.end(id, result)
    answers.append((load, result))
    logEnd(of: load, result, bytes: bytes, duration: duration)
    if let ended { judge(ended.transfer, id, result) }
  }

  /// Reports a transfer's outcome to the host's circuit breaker. If the circuit opens, all loads
  /// waiting for the host fail.
  private func judge(
    _ transfer: Transfer, _ id: DownloadQueue.ID, _ result: Result<LoadResult, ImageError>
  ) {
    let host = transfer.host
    let outcome = CircuitBreaker.Outcome(
      of: result, hasAnswer: transfer.hasAnswer, hasSentRequest: transfer.hasSentRequest,
      url: transfer.url)
    guard breaker.end(id, at: host, outcome, now: clock.now) else { return }
    log.warning("circuit opened", ["host": .string(host)])
    for id in queue.removeWaiting(for: host) { end(id, .failure(Self.circuitOpen)) }
  }

  private func giveAnswers() {
    counters.publish(queue, breaker)
    for (load, result) in answers { load.answer(result) }
    answers = []
  }

  /// Logs the end of a load. Omits the query, because signed URLs carry secrets in it.
  private func logEnd(
    of load: PendingDownload, _ result: Result<LoadResult, ImageError>, bytes: Int,
    duration: Duration?
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
