// ClockWatch: notices that the clock was set back, by what is kept and came in later than now.

import Model
import Telemetry

/// Whether it is time to tell that the clock was set back. Pure: it is told what time it is.
///
/// One setting back is one episode, however much of what is kept shows it: it ends when the clock has caught up with the
/// latest of that.
struct ClockWatch {
  private var caughtUpAt: UnixTime?

  /// Something is kept that came in after `now`; tells whether this begins an episode.
  mutating func sees(_ receivedAt: UnixTime, now: UnixTime) -> Bool {
    let known = caughtUpAt.flatMap { now < $0 ? $0 : nil }
    caughtUpAt = max(known ?? receivedAt, receivedAt)
    return known == nil
  }
}

extension ImageManager {
  /// Counts a kept source whose age nobody knows, and logs that once an episode. On the way to the origin, so it costs
  /// hits nothing.
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
