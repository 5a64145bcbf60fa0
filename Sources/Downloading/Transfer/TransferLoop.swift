// TransferLoop: the loop of the transfer thread: commands, names, transfers, paces, results.

import CCurl
import Core
import Glibc
import Requesting

/// Runs all transfers on one thread. All members belong to that thread.
final class TransferLoop {
  struct Running {
    let transfer: Transfer
    let since: ContinuousClock.Instant
    /// The pace of the current hop's host.
    var pace: TransferPace
  }

  var rules: TransferRules
  private let mailbox: Mailbox
  let multi: MultiHandle
  let resolver: NameResolver
  /// Verifies digests: hashing on the transfer thread would stall all transfers.
  private let digesting: BlockingThreads
  let counters: DownloadCounters
  private let board: DownloadMonitor
  let log: Log
  let clock = ContinuousClock()

  var queue: DownloadQueue
  var breaker: CircuitBreaker
  private var queuePace = QueuePace()
  let room: BodyRoom
  var names: NameTable
  /// Answers of names that are not passed to their loads yet.
  var nameAnswers: [(id: DownloadQueue.ID, answer: NameAnswer)] = []
  /// Names that are looked up ahead of the queue, by their loads.
  var ahead: [DownloadQueue.ID: NameAhead] = [:]
  /// Questions for outlooks that wait for a name.
  var inspections: [DownloadQueue.ID: (target: DownloadTarget, reply: Reply<LoadOutlook?>)] = [:]
  let alarm = TransferAlarm()
  /// Loads without a result, waiting or running.
  private(set) var loads: [DownloadQueue.ID: PendingDownload] = [:]
  var running: [DownloadQueue.ID: Running] = [:]
  private var idsByHandle: [UnsafeMutableRawPointer: DownloadQueue.ID] = [:]
  /// Bodies of running loads whose digests are being verified.
  private(set) var unverified: [DownloadQueue.ID: Download] = [:]
  /// Running loads that were reported to the queue as silent.
  var silent: Set<DownloadQueue.ID> = []
  /// Running loads whose response has begun, and that are not reported to the queue yet.
  var answered: [DownloadQueue.ID] = []
  /// Results of this iteration. Delivered after the figures are updated.
  private var answers: [(load: PendingDownload, result: Result<LoadResult, ImageError>)] = []

  init(
    rules: TransferRules, mailbox: Mailbox, multi: MultiHandle, resolver: NameResolver,
    digesting: BlockingThreads, counters: DownloadCounters, board: DownloadMonitor,
    bodies: ByteBudget, log: Log
  ) {
    room = BodyRoom(bodies)
    self.rules = rules
    self.mailbox = mailbox
    self.multi = multi
    self.resolver = resolver
    self.digesting = digesting
    self.counters = counters
    self.board = board
    self.log = log
    let configuration = rules.configuration
    queue = DownloadQueue(
      configuration.queueLimits, order: configuration.order)
    breaker = CircuitBreaker(
      threshold: configuration.breakerThreshold, openTime: configuration.breakerOpenTime)
    var limits = configuration.names
    limits.deadline = configuration.connectTimeout
    names = NameTable(limits)
  }

  /// Runs until the mailbox is closed and every load has its result.
  func run() {
    while true {
      let (commands, isClosed) = mailbox.take()
      for command in commands { command(self) }
      if isClosed {
        for id in loads.keys.sorted() { end(id, with: .failure(.draining)) }
        giveAnswers()
        for inspection in inspections.values { inspection.reply.give(nil) }
        return
      }
      passNameAnswers()
      do throws(ImageError) {
        let ended = try multi.perform()
        hearAnsweredOnes()
        for (easy, code) in ended {
          if let id = idsByHandle[easy] { hopEnded(id, with: code) }
        }
        apply(queue.expire(now: clock.now))
        if alarm.rings(at: clock.now) { lookAfterWaits() }
        giveAnswers()
        let next = [queue.nextDeadline, alarm.time].compactMap(\.self).min()
        let time = next.map { $0 - clock.now } ?? .seconds(60)
        try multi.wait(atMost: nameAnswers.isEmpty ? time : .zero)
      } catch {
        // curl is out of memory or inconsistent: fail the running transfers; waiting ones may still
        // succeed.
        log.error(
          "running transfers failed", fields: ["detail": .string(error.logDetail ?? error.code)])
        for id in running.keys.sorted() { finish(id, with: .failure(error)) }
        giveAnswers()
        // Avoids a busy loop if curl keeps failing.
        usleep(50_000)
      }
    }
  }

  /// Moves a waiting load up: its priority was raised.
  func raise(_ id: DownloadQueue.ID) {
    if let load = loads[id] { queue.raise(id, to: load.priority.value) }
  }

  /// Adds a load. Its circuit may be open, and its name is looked up ahead of the queue.
  func add(_ load: PendingDownload) {
    loads[load.id] = load
    board.add(load)
    guard !breaker.refuses(load.id, to: load.target.circuit, now: clock.now) else {
      return end(load.id, with: .failure(Self.circuitOpen))
    }
    if !lookUpAhead(load) { enqueue(load) }
  }

  /// Passes a load to the queue. Its priority and clients may have changed since it came.
  func enqueue(_ load: PendingDownload) {
    apply(
      queue.add(
        load.id, host: load.target.hostAndPort, clients: Array(load.priority.clients),
        priority: load.priority.value,
        now: load.arrived))
  }

  static let circuitOpen = ImageError.sourceUnreachable(
    detail: "circuit open: the host failed repeatedly", key: "download.breaker_threshold")

  func apply(_ actions: [DownloadQueue.Action]) {
    var rest = actions[...]
    while let action = rest.popFirst() {
      switch action {
      case .start(let id):
        do throws(ImageError) {
          try start(id)
        } catch {
          end(id, with: .failure(error))
          rest += queue.remove(id)
        }
      case .refuse(let id):
        end(id, with: .failure(.overloaded(queue: "download", retryAfter: retryAfter)))
      case .expire(let id):
        end(id, with: .failure(.overloaded(queue: "download time", retryAfter: retryAfter)))
      case .giveUp(let id):
        // Not a failure of the source: at another time, its host may have all the time it needs.
        counters.givenUp.add()
        end(id, with: .failure(.overloaded(queue: "stalled downloads", retryAfter: retryAfter)))
      }
    }
  }

  /// Estimated seconds until the waiting loads have started.
  private var retryAfter: Int {
    queuePace.seconds(forWaiting: queue.waitingCount, width: rules.configuration.limit)
  }

  private func start(_ id: DownloadQueue.ID) throws(ImageError) {
    guard let load = loads[id] else { return }
    let now = clock.now
    let transfer = try Transfer(
      load, rules: rules, room: room, alarm: alarm, now: now,
      reports: Transfer.Reports(
        answered: { [weak self] in self?.answered.append(id) },
        // It is forgotten as soon as a name that does not exist, or its next answer would be
        // faster.
        refused: { [weak self] in self?.names.shorten($0) },
        received: { [board] in board.progress(id, received: $0, expected: $1) }))
    guard breaker.admit(id, to: transfer.circuit, now: now) else { throw Self.circuitOpen }
    running[id] = Running(
      transfer: transfer, since: now, pace: TransferPace(rules.configuration.pace, asked: now)
    )
    board.run(id, at: transfer.host)
    idsByHandle[transfer.handle] = id
    try send(id, now)
    alarm.set(now + rules.configuration.pace.silentAfter)
  }

  /// Continues with the next hop of a load, or ends it. `unresolved`: see `Transfer.hopEnded`.
  func hopEnded(_ id: DownloadQueue.ID, with code: CURLcode, unresolved: String? = nil) {
    guard let transfer = running[id]?.transfer else { return }
    multi.remove(transfer.handle)
    let circuit = transfer.circuit
    let now = clock.now
    switch transfer.hopEnded(code, unresolved: unresolved, now: now) {
    case .ended(let result):
      finish(id, with: result)
    case .unverified(let download, let sent, let digests):
      transfer.endSpan(after: nil, now: now)
      unverified[id] = download
      queue.recover(id)
      // As many as concurrent transfers at most.
      _ = digesting.add(isBounded: false) { [mailbox] in
        let mismatch = digests.mismatch(with: sent)
        mailbox.post { $0.verified(id, mismatch: mismatch) }
      }
    case .nextHop:
      breaker.end(id, at: circuit, outcome: .success, now: now)
      board.run(id, at: transfer.host)
      proceed(id, transfer, ifRefused: Self.circuitOpen, now) { () throws(ImageError) in }
    // The load keeps its slot, and its circuit breaker waits for the final outcome.
    case .retry(let error): transfer.endSpan(after: error, now: now)
    }
  }

  func verified(_ id: DownloadQueue.ID, mismatch: String?) {
    guard let download = unverified[id] else { return }
    running[id]?.transfer.verified(isRight: mismatch == nil)
    finish(
      id,
      with: mismatch.map { .failure(.sourceIncomplete(detail: $0)) } ?? .success(.fetched(download))
    )
  }

  /// Fails transfers whose first byte is overdue, and starts the retries that are due.
  private func lookAfterWaits() {
    let now = clock.now
    noteStalledOnes(now)
    apply(names.expire(now: now))
    if let deadline = names.nextDeadline { alarm.set(deadline) }
    for (id, transfer) in running.map({ ($0.key, $0.value.transfer) }).sorted(by: { $0.0 < $1.0 }) {
      switch transfer.wait {
      case .nothing: break
      case .firstByte(let end) where end <= now:
        finish(
          id,
          with: .failure(
            .sourceTimeout(
              detail: "no response within the first-byte time-out",
              key: "download.first_byte_timeout")))
      case .retry(let time, let error) where time <= now:
        proceed(id, transfer, ifRefused: error, now) { () throws(ImageError) in
          try transfer.retry(now: now)
          counters.retries.add()
        }
      case .firstByte(let time), .retry(let time, _): alarm.set(time)
      }
    }
  }

  /// Sends the next request of a running load, or ends the load.
  private func proceed(
    _ id: DownloadQueue.ID, _ transfer: Transfer, ifRefused refusal: ImageError,
    _ now: ContinuousClock.Instant, preparing prepare: () throws(ImageError) -> Void
  ) {
    guard breaker.admit(id, to: transfer.circuit, now: now) else {
      return finish(id, with: .failure(refusal))
    }
    do throws(ImageError) {
      try prepare()
      try send(id, now)
      noteAsking(id, at: now)
    } catch {
      finish(id, with: .failure(error))
    }
  }

  /// Ends a load, releases its slot, and starts the next ones.
  func finish(_ id: DownloadQueue.ID, with result: Result<LoadResult, ImageError>) {
    end(id, with: result)
    apply(queue.remove(id))
  }

  /// Removes a load and its transfer from the tables and records the result. No effect if the load
  /// has ended.
  private func end(_ id: DownloadQueue.ID, with result: Result<LoadResult, ImageError>) {
    guard let load = loads.removeValue(forKey: id) else { return }
    var duration: Duration?
    var bytes = 0
    let ended = running.removeValue(forKey: id)
    silent.remove(id)
    names.leave(id)
    ahead[id] = nil
    unverified[id] = nil
    if let ended {
      // First of all: curl may call the transfer until its handle is removed.
      multi.remove(ended.transfer.handle)
      idsByHandle[ended.transfer.handle] = nil
      ended.transfer.endSpan(after: result.error, now: clock.now)
      load.request.onEnd?(ended.transfer.progress)
      let time = clock.now - ended.since
      queuePace.record(time)
      duration = time
      bytes = ended.transfer.bytes
    }
    counters.count(result, bytes: bytes, duration: duration)
    board.end(id, with: result)
    answers.append((load, result))
    // Without the query, because signed URLs carry secrets in it.
    log.debug(
      "download",
      fields: [
        "host": .string(load.target.hostAndPort), "path": .string(load.target.url.path),
        "outcome": .string(result.error?.code ?? "ok"), "bytes": .int(bytes),
        "duration_ms": .milliseconds(duration ?? .zero),
      ])
    if let transfer = ended?.transfer {
      judge(
        id, at: transfer.circuit, host: transfer.host,
        Breaker.Outcome(of: result, wasConnected: transfer.hop.sentAt != nil))
    }
  }

  /// Reports how a load ended to a host's circuit breaker. If the circuit opens, all loads that
  /// wait for the host fail.
  func judge(_ id: DownloadQueue.ID, at circuit: String, host: String, _ outcome: Breaker.Outcome) {
    guard breaker.end(id, at: circuit, outcome: outcome, now: clock.now) else { return }
    log.warning("circuit opened", fields: ["host": .string(host)])
    let waiting = loads.values.filter { $0.target.circuit == circuit && running[$0.id] == nil }
    for id in waiting.map(\.id).sorted() { finish(id, with: .failure(Self.circuitOpen)) }
  }

  private func giveAnswers() {
    counters.publish(
      queue, waiting: loads.count - running.count, breaker: breaker,
      waitingForMemory: room.waitingCount)
    publishNames()
    for (load, result) in answers { load.answer(result) }
    answers = []
  }

  // MARK: Paces

  /// Reports the loads whose response has begun to the queue.
  func hearAnsweredOnes() {
    let ids = answered
    answered = []
    for id in ids {
      guard let transfer = running[id]?.transfer, let time = transfer.hop.answeredAt else {
        continue
      }
      if silent.remove(id) != nil { alarm.set(time + rules.configuration.pace.window) }
      queue.recover(id)
    }
  }

  /// Starts the timers of a load's current hop. Each host gets its own time.
  func noteAsking(_ id: DownloadQueue.ID, at now: ContinuousClock.Instant) {
    running[id]?.pace = TransferPace(rules.configuration.pace, asked: now)
    if !silent.contains(id) { queue.recover(id) }
    alarm.set(now + rules.configuration.pace.silentAfter)
  }

  /// Reports silent and slow loads to the queue, and loads that are slow no longer.
  func noteStalledOnes(_ now: ContinuousClock.Instant) {
    // A load that ends here releases its place, so others may start meanwhile.
    for id in running.keys.sorted() { noteStall(id, now) }
  }

  private func noteStall(_ id: DownloadQueue.ID, _ now: ContinuousClock.Instant) {
    // A body that is being verified is complete.
    guard let transfer = running[id]?.transfer, !silent.contains(id), unverified[id] == nil else {
      return
    }
    if case .retry = transfer.wait { return }
    let answered = transfer.hop.answeredAt
    // The host does not send, because this server does not read.
    if transfer.hasNoMemory {
      queue.recover(id)
      running[id]?.pace.restart(at: now, bytes: transfer.hopBytes)
    }
    let finding = running[id]?.pace.check(answered: answered, bytes: transfer.hopBytes, now: now)
    // Others wait for the memory of a body that will not be complete in time.
    if finding != nil, room.waitingCount > 0, transfer.willMissDeadline(now) {
      return finish(
        id, with: .failure(.overloaded(queue: "download memory", retryAfter: retryAfter)))
    }
    switch finding {
    case .silent:
      silent.insert(id)
      return apply(queue.silence(id))
    case .slow(let rate): apply(queue.slow(id, rate: rate))
    case .fast: queue.recover(id)
    case nil: break
    }
    guard let time = running[id]?.pace.next(answered: answered) else { return }
    // Many transfers are checked together, not each at a time of its own.
    alarm.set(answered == nil ? time : max(time, now + .milliseconds(50)))
  }

  // MARK: Settings

  /// Takes over the settings for loads that start from now on. Host rules that have not changed
  /// keep their connections and cookies.
  func apply(_ configuration: DownloaderConfiguration) {
    if configuration.hostRules != rules.configuration.hostRules {
      configuration.warnOfUnverifiedHosts(log)
    }
    do throws(ImageError) {
      rules = try TransferRules(configuration, own: rules.own, keeping: rules.hosts)
    } catch {
      return log.error(
        "the settings of downloads stay as they were",
        fields: ["detail": .string(error.logDetail ?? error.code)])
    }
    breaker.set(
      threshold: configuration.breakerThreshold, openTime: configuration.breakerOpenTime)
    apply(queue.set(configuration.queueLimits, order: configuration.order))
  }
}
