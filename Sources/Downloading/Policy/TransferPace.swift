// TransferPace: tells whether a hop is silent, slow or fast. Has no clock and no sockets.

import Model
import Platform

/// Measures how fast a hop's host sends: whether it responds in time, and then how many bytes it sends
/// in each of the windows since its response.
///
/// Only a window that is over counts, so a host that sends in bursts has `window` for each. A host that
/// was slow in one window may be fast in the next.
struct TransferPace {
  /// What a check found.
  enum Finding: Hashable {
    /// The host has not responded for long.
    case silent
    /// The host has sent less than the minimum in the last window; `rate` in KiB/s.
    case slow(rate: Int)
    /// The host has sent enough in the last window.
    case fast
  }

  /// When a host counts as silent or slow.
  struct Limits {
    let silentAfter: Duration
    /// How long a host's rate is measured.
    let window: Duration
    /// The minimum rate in bytes per second.
    let minimumRate: Int
  }

  private let limits: Limits
  private let asked: ContinuousClock.Instant
  /// The beginning of the current window, and the bytes before it; `nil` before the response.
  private var mark: (time: ContinuousClock.Instant, bytes: Int)?

  /// Begins with a request.
  init(_ limits: Limits, asked: ContinuousClock.Instant) {
    self.limits = limits
    self.asked = asked
  }

  /// Checks a hop. Returns `nil` if nothing is known since the last finding.
  ///
  /// - Parameters:
  ///   - answered: when the response head was complete; `nil` if it is not.
  ///   - bytes: all bytes of the body so far.
  mutating func check(
    answered: ContinuousClock.Instant?, bytes: Int, now: ContinuousClock.Instant
  ) -> Finding? {
    guard let answered else { return asked + limits.silentAfter <= now ? .silent : nil }
    let begin = mark ?? (answered, 0)
    mark = begin
    let time = now - begin.time
    guard time >= limits.window, time > .zero else { return nil }
    mark = (now, bytes)
    let rate = Double(bytes - begin.bytes) / (time / .seconds(1))
    return rate < Double(limits.minimumRate) ? .slow(rate: Int(rate / 1_024)) : .fast
  }

  /// Begins a new window, because the host could not send in the last one.
  mutating func restart(at now: ContinuousClock.Instant, bytes: Int) { mark = (now, bytes) }

  /// When the next check can find something.
  func next(answered: ContinuousClock.Instant?) -> ContinuousClock.Instant {
    guard let answered else { return asked + limits.silentAfter }
    return (mark?.time ?? answered) + limits.window
  }
}
