// DiskCounts: the disk tier's counters and its log lines for recurring failures.

import Model
import Synchronization
import Telemetry

/// The disk tier's counters.
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
  /// Creates the figures of a share. Room reserved by writes in progress counts as used.
  init(_ share: DiskShare) {
    let (use, limit) = (share.use, share.limit)
    self.init(
      entries: use.files, bytes: use.bytes, limit: limit.bytes,
      countLimit: limit.files == .max ? 0 : limit.files)
  }
}

/// A run of failures of one operation, from the first failure to the next success. It writes two
/// log lines, regardless of the number of failures.
///
/// Each operation has its own episode. Otherwise successful writes would end the episode of failing
/// reads.
final class FailureEpisode: Sendable {
  private let isOpen = Atomic<Bool>(false)
  private let log: Log
  private let subject: String

  /// Creates a closed episode.
  ///
  /// - Parameter subject: completes "cannot …" in the log line.
  init(_ subject: String, log: Log) { (self.subject, self.log) = (subject, log) }

  /// Records a failure. Logs it if it is the first of the episode.
  func fail(_ detail: String) {
    guard !isOpen.exchange(true, ordering: .relaxed) else { return }
    log.warning("cannot \(subject); requests are served without it", ["reason": .string(detail)])
  }

  /// Records a success. Logs it if it ends an episode.
  func succeed() {
    guard isOpen.load(ordering: .relaxed), isOpen.exchange(false, ordering: .relaxed) else {
      return
    }
    log.info("can \(subject) again")
  }
}

/// A run of cleans that find entries with times in the future. Each backward step of the clock
/// writes one log line.
final class ClockEpisode: Sendable {
  private let isOpen = Atomic<Bool>(false)
  private let log: Log

  init(log: Log) { self.log = log }

  /// Records the number of such entries that a clean found.
  func note(_ count: Int) {
    guard !isOpen.exchange(count > 0, ordering: .relaxed), count > 0 else { return }
    log.warning(
      "the clock was set back; cache entries from the future count as new",
      ["entries": .int(count)])
  }
}
