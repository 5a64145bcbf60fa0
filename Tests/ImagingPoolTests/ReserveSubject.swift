// ReserveSubject: a reserve of cores in a test's time, with loops as busy as the test says.

import Core
import Glibc
import TestSupport

@testable import ImagingPool

/// A reserve of cores 0 to `count - 1` whose loops use what the test says.
final class ReserveSubject: Sendable {
  private let time = Lock(Duration.zero)
  private let now: Lock<ContinuousClock.Instant>
  let reserve: CoreReserve
  /// Where the loops were moved to, one after the other.
  let moves = Lock<[Cores]>([])
  /// Whether loops cannot be moved.
  let isStuck = Lock(false)
  /// The number of the server's cores.
  let count: Lock<Int>

  init(cores count: Int) throws {
    let start = ContinuousClock.now
    now = Lock(start)
    self.count = Lock(count)
    reserve = try CoreReserve(
      of: { [count = self.count] () throws(SystemError) in Cores(0..<count.withLock { $0 }) },
      for: EventLoops(
        time: { [time] in time.withLock { $0 } },
        confine: { [moves, isStuck] cores throws(SystemError) in
          guard !isStuck.withLock({ $0 }) else { throw SystemError(EINVAL) }
          moves.withLock { $0.append(cores) }
        }), now: start)
  }

  /// Places the loops while this many jobs run. Returns where they moved; `nil`: they stay.
  func place(running: Int) throws -> Cores? {
    let count = moves.withLock { $0.count }
    try reserve.placeLoops(running: { running }, now: now.withLock { $0 })
    return moves.withLock { $0.count > count ? $0.last : nil }
  }

  /// Lets the loops use this many cores for some time. Returns the number of reserved cores.
  func use(_ cores: Double, for duration: Duration) -> Int {
    var left = duration
    while left > .zero {
      let step = min(left, CoreReserve.pause)
      time.withLock { $0 += step * cores }
      let instant = now.withLock { now in
        now += step
        return now
      }
      _ = reserve.share(now: instant)
      left -= step
    }
    return reserve.count
  }

  /// A worker could not be moved. Returns whether that is news.
  func fail() -> Bool { reserve.fail(now: now.withLock { $0 }) }

  /// Lets the loops use this many cores, and measures at the end alone.
  func useUnseen(_ cores: Double, for duration: Duration) -> Int {
    time.withLock { $0 += duration * cores }
    let instant = now.withLock { now in
      now += duration
      return now
    }
    _ = reserve.share(now: instant)
    return reserve.count
  }
}
