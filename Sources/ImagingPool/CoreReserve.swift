// CoreReserve: how many cores the workers leave to the event loops.

import Platform

/// While event loops are busy, workers leave them cores of their own.
///
/// A thread that becomes runnable waits until the scheduler takes its core from a worker, some milliseconds at worst,
/// whatever the niceness (docs/decisions/022). A core without workers has no such wait. The reserve is one and a half
/// times what the loops use, rounded up, and at most half of the cores.
final class CoreReserve: Sendable {
  /// The time between two measurements.
  static let pause = Duration.milliseconds(10)
  /// Cores in use from which on there is a reserve, and below which an existing one ends.
  private static let (rise, fall) = (0.2, 0.1)
  /// How long less must be in use before the reserve shrinks.
  private static let patience = Duration.milliseconds(500)

  private struct State {
    var measuredAt: ContinuousClock.Instant
    var loopTime: Duration
    /// The number of reserved cores.
    var count = 0
    /// Since when fewer would do; `nil` if they would not.
    var isAmpleSince: ContinuousClock.Instant?
  }

  /// All cores of the server.
  private let cores: Cores
  private let loopTime: @Sendable () -> Duration
  private let state: Lock<State>

  /// Creates a reserve.
  ///
  /// - Parameters:
  ///   - cores: all cores of the server; with fewer than two there is never a reserve.
  ///   - loopTime: returns the processor time of all event loops together.
  init(
    of cores: Cores, now: ContinuousClock.Instant = .now,
    loopTime: @escaping @Sendable () -> Duration
  ) {
    self.cores = cores
    self.loopTime = loopTime
    state = Lock(State(measuredAt: now, loopTime: loopTime()))
  }

  /// The number of reserved cores.
  var count: Int { state.withLock { $0.count } }

  /// Returns the cores of the workers. Measures first, unless the last measurement is recent.
  func workersCores(now: ContinuousClock.Instant = .now) -> Cores {
    let count = state.withLock { state in
      let elapsed = state.measuredAt.duration(to: now)
      guard elapsed >= Self.pause else { return state.count }
      let time = loopTime()
      let used = max((time - state.loopTime) / elapsed, 0)
      state.measuredAt = now
      state.loopTime = time
      state.count = next(after: &state, used: used, isCurrent: elapsed < Self.patience, now: now)
      return state.count
    }
    // The first cores are the loops', because the others of two threads of a core have the higher numbers.
    return count == 0 ? cores : Cores(cores.numbers.dropFirst(count))
  }

  private func next(
    after state: inout State, used: Double, isCurrent: Bool, now: ContinuousClock.Instant
  ) -> Int {
    let isEnough = used >= (state.count > 0 ? Self.fall : Self.rise)
    let wanted = isEnough ? min(Int((used * 1.5).rounded(.up)), cores.numbers.count / 2) : 0
    guard wanted < state.count, isCurrent else {
      state.isAmpleSince = nil
      return wanted
    }
    let since = state.isAmpleSince ?? now
    state.isAmpleSince = since
    guard since.duration(to: now) >= Self.patience else { return state.count }
    state.isAmpleSince = nil
    return wanted
  }
}
