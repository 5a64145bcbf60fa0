// DiskCounts: the disk tier's counters, and the log's share of failures that come in numbers.

import Model
import Synchronization
import Telemetry

/// What the disk tier counts.
final class DiskCounts: Sendable {
  let hits = Counter()
  let misses = Counter()
  let stores = Counter()
  let evictions = Counter()
  let expirations = Counter()
  let damaged = Counter()
  let failures = Counter()
  let latency = LatencyHistogram()

  /// The counters as `/stats` shows them.
  var figures: TierFigures {
    var figures = TierFigures()
    figures.hits = hits.value
    figures.misses = misses.value
    let all = figures.hits + figures.misses
    figures.hitRatio = all == 0 ? 0 : Double(figures.hits) / Double(all)
    figures.stores = stores.value
    figures.evictions = evictions.value
    figures.expirations = expirations.value
    figures.damaged = damaged.value
    figures.failures = failures.value
    figures.latency = latency.figures
    return figures
  }
}

/// A run of failures, from the first to the next success: two log lines, however many there were.
final class FailureEpisode: Sendable {
  private let isOpen = Atomic<Bool>(false)
  private let log: Log

  init(log: Log) { self.log = log }

  /// Notes a failure.
  func fail(_ message: String, _ detail: String) {
    guard !isOpen.exchange(true, ordering: .relaxed) else { return }
    log.warning("\(message); requests are served without it", ["reason": .string(detail)])
  }

  /// Notes a success.
  func succeed() {
    guard isOpen.load(ordering: .relaxed), isOpen.exchange(false, ordering: .relaxed) else {
      return
    }
    log.info("the cache folder works again")
  }
}
