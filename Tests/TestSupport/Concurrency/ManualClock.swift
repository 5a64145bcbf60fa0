// ManualClock: a clock that only a test moves.

import Core

/// A clock that stands still until a test advances it.
public final class ManualClock: Sendable {
  private let seconds: Lock<Int>

  /// Creates a clock that shows a Unix time in seconds.
  public init(seconds: Int = 1_700_000_000) { self.seconds = Lock(seconds) }

  /// The time on the clock.
  public var now: UnixTime { UnixTime(seconds: seconds.withLock { $0 }) }

  /// Advances the clock by a number of seconds.
  public func advance(by amount: Int) { seconds.withLock { $0 += amount } }
}
