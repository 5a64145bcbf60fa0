// ClockWatch: detects that the system clock was set back.

import Model
import Telemetry

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

extension ImageManager {
  /// Counts a cached source whose age is unknown, and logs once per episode. Only requests to the
  /// origin call this method, so hits pay nothing.
  func noteClock(_ freshness: Freshness) {
    let now = now()
    guard !freshness.isOfThePast(at: now) else { return }
    counts.clockSetBack.add()
    guard clockWatch.withLock({ $0.sees(freshness.receivedAt, now: now) }) else { return }
    log.warning(
      "the clock was set back: what came in later than now is asked for again",
      ["seconds": .int(freshness.receivedAt.seconds - now.seconds)])
  }
}
