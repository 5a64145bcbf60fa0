// RespawnBackoff: how soon a worker is started again after one that could not even start.

/// Doubles the wait with every failed start, from 100 ms to 5 s; a start that worked ends it.
struct RespawnBackoff {
  private var failures = 0
  /// Before this, no further attempt is made; `nil`: at once.
  private(set) var notBefore: ContinuousClock.Instant?

  mutating func failed(at now: ContinuousClock.Instant) {
    notBefore = now + min(.milliseconds(100 << min(failures, 10)), .seconds(5))
    failures += 1
  }

  mutating func succeeded() { self = RespawnBackoff() }

  func allows(_ now: ContinuousClock.Instant) -> Bool { notBefore.map { now >= $0 } ?? true }
}
