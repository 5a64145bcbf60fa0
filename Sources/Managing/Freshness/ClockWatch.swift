// ClockWatch: detects that the system clock was set back.

import Core

/// Decides when to log that the clock was set back. A pure state machine: the caller passes the
/// time.
///
/// Each setback is one episode, however many cached sources show it. The episode ends when the
/// clock reaches the latest of their receive times.
struct ClockWatch {
  private var caughtUpAt: UnixTime?

  /// Notes a cached source received after `now`. Returns whether this begins an episode.
  mutating func sees(_ receivedAt: UnixTime, now: UnixTime) -> Bool {
    let known = caughtUpAt.flatMap { now < $0 ? $0 : nil }
    caughtUpAt = max(known ?? receivedAt, receivedAt)
    return known == nil
  }
}

/// Counts and logs cached sources whose age is unknown, because the clock was set back.
struct ClockMonitor: Sendable {
  private let watch = Lock(ClockWatch())
  let counters: FreshnessCounters
  let log: Log
  let now: @Sendable () -> UnixTime

  /// Notes a cached source before its origin is asked, and logs once per episode. Hits do not call
  /// this method.
  func note(_ freshness: Freshness) {
    let now = now()
    guard !freshness.isOfThePast(at: now) else { return }
    counters.clockSetBack.add()
    guard watch.withLock({ $0.sees(freshness.receivedAt, now: now) }) else { return }
    log.warning(
      "the clock was set back: entries from the future are loaded again",
      fields: ["seconds": .int(freshness.receivedAt.seconds - now.seconds)])
  }
}
