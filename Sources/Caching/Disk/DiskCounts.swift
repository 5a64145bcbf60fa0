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
  let redated = Counter()
  let damaged = Counter()
  let purged = Counter()
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
    figures.redated = redated.value
    figures.damaged = damaged.value
    figures.purged = purged.value
    figures.failures = failures.value
    figures.latency = latency.figures
    return figures
  }
}

extension ShareFigures {
  /// An account, what is promised to writes under way included.
  init(_ share: DiskShare) {
    let (use, limit) = (share.use, share.limit)
    self.init(
      entries: use.files, bytes: use.bytes, limit: limit.bytes,
      countLimit: limit.files == .max ? 0 : limit.files)
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

/// Entries whose times are still to come, clean by clean: one log line each time that the clock was set back.
final class ClockEpisode: Sendable {
  private let isOpen = Atomic<Bool>(false)
  private let log: Log

  init(log: Log) { self.log = log }

  /// Notes how many a clean found.
  func note(_ count: Int) {
    guard !isOpen.exchange(count > 0, ordering: .relaxed), count > 0 else { return }
    log.warning(
      "the clock was set back; cache entries from its future are taken as of now",
      ["entries": .int(count)])
  }
}
