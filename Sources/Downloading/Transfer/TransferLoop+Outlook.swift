// TransferLoop+Outlook: tells what would happen to a load, without loading.

import Model
import Platform

extension TransferLoop {
  /// Returns what would happen to a load of `target` now.
  func outlook(for target: DownloadTarget) -> LoadOutlook {
    var outlook = LoadOutlook()
    let host = target.hostAndPort
    outlook.host = host
    breaker.describe(target.circuit, in: &outlook, now: clock.now)
    queue.describe(host, in: &outlook)
    outlook.maximumBytes = rules.configuration.maximumBytes
    // No load has this number, so it is never the probe.
    if breaker.refuses(0, to: target.circuit, now: clock.now) { outlook.error = Self.circuitOpen }
    if let refusal = refusal(of: target) { outlook.error = refusal }
    return outlook
  }

  /// Returns why no address of a target may be connected to. A name is judged by the addresses that are remembered: it
  /// is not looked up for that.
  private func refusal(of target: DownloadTarget) -> ImageError? {
    if rules.proxy(rules.hosts[target]?.rule) != nil {
      return rules.refusal(byProxy: target.host).map { .refused($0, isNamed: false) }
    }
    let addresses: [IPAddress] =
      if let name = HopName(target) {
        names.remembered(name.name)
      } else {
        // Only localhost names are neither addresses nor looked up.
        [IPAddress(target.host) ?? .v4(0x7f00_0001)]
      }
    let refusals = addresses.map { rules.refusal(of: $0, for: target) }
    return refusals.allSatisfy { $0 != nil } ? refusals.first ?? nil : nil
  }
}
