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
  let deferred = Counter()
  let displaced = Counter()
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
    figures.deferred = deferred.value
    figures.displaced = displaced.value
    figures.latency = latency.figures
    return figures
  }
}

extension ShareFigures {
  /// Creates the figures of a share. Room reserved by writes in progress counts as used.
  init(_ share: DiskShare) {
    let use = share.use
    let limit = share.limit
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
  /// Twice the number of failures, plus 1 while an episode is open.
  private let state = Atomic<Int>(0)
  private let log: Log
  private let subject: String

  /// Creates a closed episode.
  ///
  /// - Parameter subject: completes "cannot …" in the log line.
  init(_ subject: String, log: Log) {
    self.subject = subject
    self.log = log
  }

  /// The number of failures so far.
  var failures: Int { state.load(ordering: .relaxed) / 2 }

  /// Records a failure. Logs it if it is the first of the episode.
  func fail(_ detail: String) {
    var old = state.load(ordering: .relaxed)
    while true {
      let result = state.weakCompareExchange(
        expected: old, desired: (old | 1) + 2, ordering: .relaxed)
      if result.exchanged { break }
      old = result.original
    }
    guard old.isMultiple(of: 2) else { return }
    log.warning(
      "cannot \(subject); requests are served without it", fields: ["reason": .string(detail)])
  }

  /// Records a success. Logs it if it ends an episode.
  ///
  /// - Parameter start: The number of failures when the operation began. A success that began
  ///   before the last failure does not end the episode. `nil`: any success ends it.
  func succeed(since start: Int? = nil) {
    let old = state.load(ordering: .relaxed)
    guard !old.isMultiple(of: 2), start ?? old / 2 == old / 2,
      state.compareExchange(expected: old, desired: old - 1, ordering: .relaxed).exchanged
    else { return }
    log.info("can \(subject) again")
  }
}

/// Logs that cleans find entries with times in the future: once, until a clean finds none.
final class ClockEpisode: Sendable {
  private let isOpen = Atomic<Bool>(false)
  private let log: Log

  init(log: Log) { self.log = log }

  /// Records the number of such entries that a clean found.
  func note(_ count: Int) {
    guard !isOpen.exchange(count > 0, ordering: .relaxed), count > 0 else { return }
    log.warning(
      "the clock was set back; cache entries from the future count as new",
      fields: ["entries": .int(count)])
  }
}
