// RespawnBackoff: the back-off between attempts to start a worker.

/// A back-off that doubles with each failed start, from 100 ms to 5 s. A successful start resets
/// it.
struct RespawnBackoff {
  private var failures = 0
  /// The earliest time of the next attempt; `nil` for now.
  private(set) var notBefore: ContinuousClock.Instant?

  mutating func failed(at now: ContinuousClock.Instant) {
    notBefore = now + min(.milliseconds(100 << min(failures, 10)), .seconds(5))
    failures += 1
  }

  mutating func succeeded() { self = RespawnBackoff() }

  func allows(_ now: ContinuousClock.Instant) -> Bool { notBefore.map { now >= $0 } ?? true }
}
