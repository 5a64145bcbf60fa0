// TransferLoop+Outlook: tells what would happen to a load, without loading.

import Model

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
    return outlook
  }
}
