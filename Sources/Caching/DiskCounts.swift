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

/// Runs of failures, each from the first to the next success in the same thing: two log lines, however many there were.
///
/// Each thing has its own run: where writing works and reading does not, they would else end each other's.
final class FailureEpisode: Sendable {
  private let isOpen = Atomic<Bool>(false)
  private let log: Log
  private let subject: String

  /// - Parameter subject: completes "cannot …".
  init(_ subject: String, log: Log) { (self.subject, self.log) = (subject, log) }

  /// Notes a failure.
  func fail(_ detail: String) {
    guard !isOpen.exchange(true, ordering: .relaxed) else { return }
    log.warning("cannot \(subject); requests are served without it", ["reason": .string(detail)])
  }

  /// Notes a success.
  func succeed() {
    guard isOpen.load(ordering: .relaxed), isOpen.exchange(false, ordering: .relaxed) else {
      return
    }
    log.info("can \(subject) again")
  }
}
