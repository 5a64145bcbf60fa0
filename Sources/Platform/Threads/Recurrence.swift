// Recurrence: when a thread that waits for other events as well performs something again.

/// A moment that recurs with a pause in between. Other events that wake its thread do not put it off.
public struct Recurrence: Sendable {
  private let pause: Duration
  private var next: ContinuousClock.Instant

  /// Begins with a whole pause.
  public init(every pause: Duration, now: ContinuousClock.Instant = .now) {
    self.pause = pause
    next = now + pause
  }

  /// Seconds until the moment, rounded up, at least 1.
  public func seconds(from now: ContinuousClock.Instant = .now) -> Int {
    let (seconds, rest) = now.duration(to: next).components
    return max(Int(seconds) + (rest > 0 ? 1 : 0), 1)
  }

  /// Whether the moment has come. If so, the next pause begins.
  public mutating func isDue(now: ContinuousClock.Instant = .now) -> Bool {
    guard now >= next else { return false }
    next = now + pause
    return true
  }
}
