// FailureEpisode: the disk tier's log lines for recurring failures.

import Synchronization
import Telemetry

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
