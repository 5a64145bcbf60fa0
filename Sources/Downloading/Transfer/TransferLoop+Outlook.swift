// TransferLoop+Outlook: tells what would happen to a load, without loading.

import Model
import Platform

/// A question for the outlook of a load whose name is looked up.
struct Inspection {
  let target: DownloadTarget
  let reply: Reply<LoadOutlook?>
}

extension TransferLoop {
  /// Replies what would happen to a load of `target` now, when its name is looked up as for a load. No name is looked up
  /// for a proxy, or while the circuit refuses the load.
  func inspect(_ target: DownloadTarget, id: DownloadQueue.ID, reply: Reply<LoadOutlook?>) {
    let now = clock.now
    guard rules.proxy(rules.hosts[target]?.rule) == nil, let name = HopName(target),
      !breaker.refuses(0, to: target.circuit, now: now)
    else { return reply.give(outlook(for: target)) }
    inspections[id] = Inspection(target: target, reply: reply)
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
    // Only localhost names are neither addresses nor looked up. Behind an open circuit, no address counts.
    case nil: addresses = target.isNamed ? [] : [IPAddress(target.host) ?? .v4(0x7f00_0001)]
    }
    let refusals = addresses.map { rules.refusal(of: $0, for: target) }
    guard let first = refusals.first, refusals.allSatisfy({ $0 != nil }) else { return nil }
    // As after a load that was refused.
    names.shorten(name)
    return first
  }
}
