// RespawnBackoff: the back-off between attempts to start a worker.

import Core

/// A back-off that doubles with each failed start, from 100 ms to 5 s. A successful start resets
/// it.
struct RespawnBackoff {
  /// Failed starts in a row after which jobs are refused. Until then, in about 0.7 s, a killed
  /// start is an accident.
  private static let patience = 4
  private static let pauses = Backoff(.milliseconds(100), longest: .seconds(5))

  private var failures = 0
  /// The earliest time of the next attempt; `nil` for now.
  private(set) var notBefore: ContinuousClock.Instant?

  mutating func failed(at now: ContinuousClock.Instant) {
    notBefore = now + Self.pauses.pause(after: failures)
    failures += 1
  }

  mutating func succeeded() { self = RespawnBackoff() }

  /// Whether starting is given up for now: jobs fail until an attempt succeeds.
  var isExhausted: Bool { failures >= Self.patience }

  func allows(_ now: ContinuousClock.Instant) -> Bool { notBefore.map { now >= $0 } ?? true }
}
