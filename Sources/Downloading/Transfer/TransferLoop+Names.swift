// TransferLoop+Names: looks names up, of loads ahead of the queue, of further hops and of outlooks.

import CCurl
import Core

/// The look-up of a load's name ahead of the queue: a name that does not answer holds no slot, so
/// many of them delay no other load.
struct NameAhead {
  let name: String
  let began: ContinuousClock.Instant
  /// The answer, and how long it took; `nil` while the name is looked up.
  var found: (answer: NameAnswer, time: Duration)?
}

extension TransferLoop {
  /// Looks the name of a new load up. Returns `false` if the load has no name: it has an
  /// address or a proxy.
  func lookUpAhead(_ load: PendingDownload) -> Bool {
    guard rules.proxy(rules.hosts[load.target]?.rule) == nil, let name = HopName(load.target),
      name.isValid
    else { return false }
    let now = clock.now
    ahead[load.id] = NameAhead(name: name.name, began: now)
    let deadline = now + rules.configuration.connectTimeout
    apply(names.lookUp(name.name, for: load.id, until: deadline, now: now))
    alarm.set(deadline)
    return true
  }

  /// Passes a load to the queue when its name has an answer; it hears of a failure in its turn. If
  /// the name did not answer in time, the load ends.
  func pass(_ answer: NameAnswer, ahead load: PendingDownload) {
    guard var name = ahead[load.id] else { return enqueue(load) }
    guard answer == .failure(.late) else {
      name.found = (answer, clock.now - name.began)
      ahead[load.id] = name
      return enqueue(load)
    }
    finish(load.id, with: .failure(NameFailure.late.error(of: name.name)))
    // As a connection that failed.
    let circuit = load.target.circuit
    guard breaker.admit(load.id, to: circuit, now: clock.now) else { return }
    judge(load.id, at: circuit, host: load.target.hostAndPort, .failure)
  }

  /// Passes a hop to curl, at once or when its name is resolved.
  func send(_ id: DownloadQueue.ID, _ now: ContinuousClock.Instant) throws(ImageError) {
    guard let transfer = running[id]?.transfer else { return }
    guard let name = transfer.hop.name else {
      transfer.beginSpan(now: now)
      return try send(transfer, to: [], now)
    }
    guard name.isValid else {
      nameAnswers.append((id, .failure(.unknown("not a name"))))
      return
    }
    transfer.beginSpan(now: now)
    if let known = ahead.removeValue(forKey: id), known.name == name.name,
      let (answer, time) = known.found, answer != .failure(.full)
    {
      if case .success(let addresses) = answer {
        return try send(transfer, to: addresses, now, lookedUpIn: time)
      }
      nameAnswers.append((id, answer))
      return
    }
    let deadline = transfer.connectDeadline
    apply(names.lookUp(name.name, for: id, until: deadline, now: now))
    alarm.set(deadline)
  }

  private func send(
    _ transfer: Transfer, to addresses: [IPAddress], _ now: ContinuousClock.Instant,
    lookedUpIn time: Duration = .zero
  ) throws(ImageError) {
    try transfer.launch(addresses, lookedUpIn: time, now: now)
    try multi.add(transfer.handle)
  }

  func apply(_ actions: [NameTable.Action]) {
    for action in actions {
      switch action {
      case .resolve(let name): resolver.resolve(name)
      case .answer(let id, let answer): nameAnswers.append((id, answer))
      }
    }
  }

  /// Records the answer of a look-up.
  func resolved(_ name: String, _ answer: NameAnswer) {
    apply(names.resolved(name, answer, now: clock.now))
  }

  /// Passes the answers of names to the loads that wait for them. Not at once: a failure starts a
  /// waiting load, whose name may be known, too.
  func passNameAnswers() {
    let answers = nameAnswers
    nameAnswers = []
    for (id, answer) in answers { pass(answer, to: id) }
  }

  private func pass(_ answer: NameAnswer, to id: DownloadQueue.ID) {
    if let inspection = inspections.removeValue(forKey: id) {
      return inspection.reply.give(outlook(for: inspection.target, resolved: answer))
    }
    if let load = loads[id], let name = ahead[id], name.found == nil {
      return pass(answer, ahead: load)
    }
    guard let transfer = running[id]?.transfer, let name = transfer.hop.name?.name else { return }
    switch answer {
    case .success(let addresses):
      do throws(ImageError) {
        try send(transfer, to: addresses, clock.now)
      } catch {
        finish(id, with: .failure(error))
      }
    case .failure(let failure) where failure != .full:
      let code = failure == .late ? CURLE_OPERATION_TIMEDOUT : CURLE_COULDNT_RESOLVE_HOST
      hopEnded(id, with: code, unresolved: failure.text(of: name))
    case .failure:
      counters.names.refused.add()
      transfer.discardSpan()
      finish(id, with: .failure(.overloaded(queue: "names", retryAfter: 1)))
    }
  }

  /// Stores the current state of look-ups.
  func publishNames() {
    counters.names.running.set(names.runningCount)
    counters.names.stuck.set(names.stuckCount(now: clock.now))
    counters.names.waiting.set(names.waitingCount)
    counters.names.limit.set(rules.configuration.names.threads)
    counters.names.remembered.set(names.rememberedCount)
  }

  // MARK: Outlooks

  /// Replies what would happen to a load of `target` now, when its name is looked up as for a load.
  /// No name is looked up for a proxy, or while the circuit refuses the load.
  func inspect(_ target: DownloadTarget, id: DownloadQueue.ID, reply: Reply<LoadOutlook?>) {
    let now = clock.now
    guard rules.proxy(rules.hosts[target]?.rule) == nil, let name = HopName(target),
      !breaker.refuses(0, to: target.circuit, now: now)
    else { return reply.give(outlook(for: target)) }
    inspections[id] = (target, reply)
    guard name.isValid else {
      nameAnswers.append((id, .failure(.unknown("not a name"))))
      return
    }
    let deadline = now + rules.configuration.connectTimeout
    apply(names.lookUp(name.name, for: id, until: deadline, now: now))
    alarm.set(deadline)
  }

  /// Returns what would happen to a load of `target` now.
  ///
  /// - Parameter answer: what its name resolves to; `nil` if no name is looked up.
  func outlook(for target: DownloadTarget, resolved answer: NameAnswer? = nil) -> LoadOutlook {
    var outlook = LoadOutlook()
    let host = target.hostAndPort
    outlook.host = host
    breaker.describe(target.circuit, in: &outlook, now: clock.now)
    queue.describe(host, in: &outlook)
    outlook.maximumBytes = rules.configuration.maximumBytes
    // No load has this number, so it is never the probe.
    if breaker.refuses(0, to: target.circuit, now: clock.now) { outlook.error = Self.circuitOpen }
    if let refusal = refusal(of: target, answer) { outlook.error = refusal }
    return outlook
  }

  /// Returns why no address of a target may be connected to.
  private func refusal(of target: DownloadTarget, _ answer: NameAnswer?) -> ImageError? {
    if rules.proxy(rules.hosts[target]?.rule) != nil {
      return rules.refusal(byProxy: target.host).map { .refused($0, isNamed: false) }
    }
    let name = HopName(target)?.name ?? target.host
    let addresses: [IPAddress]
    switch answer {
    case .failure(let failure): return failure.error(of: name)
    case .success(let found): addresses = found
    // Only localhost names are neither addresses nor looked up. Behind an open circuit, no address
    // counts.
    case nil: addresses = target.isNamed ? [] : [IPAddress(target.host) ?? .v4(0x7f00_0001)]
    }
    let refusals = addresses.map { rules.refusal(of: $0, for: target) }
    guard let first = refusals.first, refusals.allSatisfy({ $0 != nil }) else { return nil }
    // As after a load that was refused.
    names.shorten(name)
    return first
  }
}
