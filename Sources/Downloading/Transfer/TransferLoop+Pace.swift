// TransferLoop+Pace: reports silent and slow loads to the queue, so that other loads can start.

import Model

extension TransferLoop {
  /// Reports the loads whose response has begun to the queue.
  func hearAnsweredOnes() {
    let ids = answered
    answered = []
    for id in ids {
      guard let transfer = running[id]?.transfer, let time = transfer.answered else { continue }
      responses.setNewest(time, for: transfer.host)
      if silent.remove(id) != nil { alarm.set(time + rules.configuration.slowWindow) }
      apply(queue.answer(id, from: transfer.host))
    }
  }

  /// Starts the timers of a load's current hop. Each host gets its own time.
  func noteAsking(_ id: DownloadQueue.ID, at now: ContinuousClock.Instant) {
    running[id]?.pace = pace(from: now)
    queue.recover(id)
    alarm.set(now + rules.configuration.silentAfter)
  }

  /// Returns the pace of a hop whose host is asked now.
  func pace(from now: ContinuousClock.Instant) -> TransferPace {
    let configuration = rules.configuration
    return TransferPace(
      TransferPace.Limits(
        silentAfter: configuration.silentAfter, window: configuration.slowWindow,
        minimumRate: configuration.slowRate),
      asked: now)
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
    let answered = transfer.answered
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
      let latest = responses[transfer.host]
      let isAlive = latest.map { now - $0 < rules.configuration.aliveAfterResponse } ?? false
      apply(queue.silence(id, isAlive: isAlive))
      return
    case .slow(let rate): apply(queue.slow(id, rate: rate))
    case .fast: queue.recover(id)
    case nil: break
    }
    guard let time = running[id]?.pace.next(answered: answered) else { return }
    // Many transfers are checked together, not each at a time of its own.
    alarm.set(answered == nil ? time : max(time, now + .milliseconds(50)))
  }
}
