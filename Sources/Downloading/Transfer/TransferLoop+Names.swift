// TransferLoop+Names: looks up the name of each hop before curl gets it.

import CCurl
import Model
import Platform
import Telemetry

extension TransferLoop {
  /// Passes a hop to curl, at once or when its name is resolved.
  func send(_ id: DownloadQueue.ID, _ now: ContinuousClock.Instant) throws(ImageError) {
    guard let transfer = running[id]?.transfer else { return }
    guard let name = transfer.hopName else {
      transfer.beginSpan(now: now)
      return try send(transfer, to: [], now)
    }
    guard name.isValid else {
      nameAnswers.append((id, .failure(.unknown("not a name"))))
      return
    }
    transfer.beginSpan(now: now)
    let deadline = transfer.connectDeadline
    apply(names.lookUp(name.name, for: id, until: deadline, now: now))
    alarm.set(deadline)
  }

  private func send(
    _ transfer: Transfer, to addresses: [IPAddress], _ now: ContinuousClock.Instant
  ) throws(ImageError) {
    try transfer.launch(addresses, now: now)
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
    guard let transfer = running[id]?.transfer, let name = transfer.hopName?.name else { return }
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
    counters.names.limit.set(rules.configuration.nameLimit)
    counters.names.remembered.set(names.rememberedCount)
  }
}

extension NameFailure {
  /// Says that a name could not be resolved, and why.
  fileprivate func text(of name: String) -> String {
    let reason =
      switch self {
      case .unknown(let reason), .temporary(let reason): reason
      case .late: "the resolver did not answer in time"
      case .full: "too many names wait"
      }
    return "cannot resolve \(name): \(reason)"
  }

  /// The error of a load.
  func error(of name: String) -> ImageError {
    switch self {
    case .unknown, .temporary: .sourceUnreachable(detail: text(of: name))
    case .late: .sourceTimeout(detail: text(of: name), key: "download.connect_timeout")
    case .full: .overloaded(queue: "names", retryAfter: 1)
    }
  }
}

extension DownloaderConfiguration {
  /// The limits of look-ups.
  var nameLimits: NameTable.Limits {
    var limits = NameTable.Limits()
    limits.threads = max(nameLimit, 1)
    limits.deadline = settings.connectTimeout
    limits.lifetime = dnsCacheLifetime
    limits.negativeLifetime = unknownNameLifetime
    return limits
  }

  /// Returns the answer for a name: a known one's, or the resolver's. May block.
  var answer: NameResolver.Look {
    let known = Dictionary(
      knownAddresses.compactMap { line -> (String, [IPAddress])? in
        let parts = line.split(separator: ":", maxSplits: 2).map(String.init)
        return parts.count == 3 ? IPAddress(parts[2]).map { (parts[0], [$0]) } : nil
      }, uniquingKeysWith: +)
    return { [lookUp] name in known[name].map { .success($0) } ?? lookUp(name) }
  }
}
