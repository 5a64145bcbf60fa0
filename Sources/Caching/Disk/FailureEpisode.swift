// FailureEpisode: the disk tier's log lines for recurring failures.

import Core
import Synchronization

/// A run of failures of one operation, from the first failure to the next success. It writes two
/// log lines, regardless of the number of failures.
///
/// Each operation has its own episode. Otherwise successful writes would end the episode of failing
/// reads.
final class FailureEpisode: Sendable {
  private let isOpen = Atomic<Bool>(false)
  private let log: Log
  private let subject: String

  /// - Parameter subject: completes "cannot …" in the log line.
  init(_ subject: String, log: Log) {
    self.subject = subject
    self.log = log
  }

  /// Records a failure. Logs it if it is the first of the episode.
  func fail(_ detail: String) {
    guard !isOpen.exchange(true, ordering: .relaxed) else { return }
    log.warning(
      "cannot \(subject); requests are served without it", fields: ["reason": .string(detail)])
  }

  /// Records a success. Logs it if it ends an episode.
  func succeed() {
    guard isOpen.load(ordering: .relaxed), isOpen.exchange(false, ordering: .relaxed) else {
      return
    }
    log.info("can \(subject) again")
  }
}
