// CoreReserve: how many cores the workers leave to the event loops.

import Platform

/// The event loops, as the reserve sees them.
struct EventLoops: Sendable {
  /// Returns the processor time of all together.
  let time: @Sendable () -> Duration
  /// Lets all run on these cores only.
  let confine: @Sendable (Cores) throws(SystemError) -> Void
}

/// While event loops are busy, workers leave them cores of their own.
///
/// A thread that becomes runnable waits until the scheduler takes its core from a worker, some milliseconds at worst,
/// whatever the niceness (docs/decisions/022). A core without workers has no such wait. The reserve is one and a half
/// times what the loops use, rounded up, and at most half of the cores.
///
/// While jobs run on all other cores, the loops keep to the reserved ones, unless these are too few for them
/// (docs/decisions/046).
final class CoreReserve: Sendable {
  /// What the workers have.
  struct Share: Equatable {
    /// The cores on which they may run.
    let cores: Cores
    /// The number of cores that they leave.
    let reserved: Int
  }

  /// The time between two measurements.
  static let pause = Duration.milliseconds(10)
  /// The time after which the server's cores are read again: an operator may change them (cpuset(7)).
  static let readingPause = Duration.seconds(1)
  /// How long there is no reserve after workers could not be moved.
  static let failurePause = Duration.seconds(60)
  /// Cores in use from which on there is a reserve, and below which an existing one ends.
  private static let (rise, fall) = (0.2, 0.1)
  /// How long less must be in use before the reserve shrinks.
  private static let patience = Duration.milliseconds(500)

  /// The share of the reserved cores in use from which on the loops have too few, and below which they have enough again.
  private static let (scarce, ample) = (0.95, 0.85)

  private struct State {
    var measuredAt: ContinuousClock.Instant
    var readAt: ContinuousClock.Instant
    var failedUntil: ContinuousClock.Instant?
    var loopTime: Duration
    /// All cores of the server.
    var cores: Cores
    /// The number of reserved cores.
    var count = 0
    /// Since when fewer would do; `nil` if they would not.
    var isAmpleSince: ContinuousClock.Instant?
    /// Until when the loops have all cores, because the most that can be reserved were too few.
    var scarceUntil: ContinuousClock.Instant?
  }

  private let allowed: @Sendable () throws(SystemError) -> Cores
  private let loops: EventLoops
  private let state: Lock<State>
  /// The cores of the loops; `nil` if they were never moved. Its lock is held while they are moved.
  private let place = Lock<Cores?>(nil)

  /// Creates a reserve.
  ///
  /// - Parameters:
  ///   - allowed: returns all cores of the server; with fewer than two there is no reserve.
  ///   - loops: what uses the reserve.
  /// - Throws: what `allowed` throws at first. Later, the last known cores stay.
  init(
    of allowed: @escaping @Sendable () throws(SystemError) -> Cores,
    for loops: EventLoops, now: ContinuousClock.Instant = .now
  ) throws(SystemError) {
    self.allowed = allowed
    self.loops = loops
    let cores = try allowed()
    state = Lock(State(measuredAt: now, readAt: now, loopTime: loops.time(), cores: cores))
  }

  /// The number of reserved cores.
  var count: Int { state.withLock { $0.count } }

  /// Returns what the workers have. Measures first, unless the last measurement is recent.
  func share(now: ContinuousClock.Instant = .now) -> Share {
    readCores(now: now)
    measure(now: now)
    return state.withLock { state in
      // The first cores are the loops', because the others of two threads of a core have the higher numbers.
      let cores =
        state.count == 0 ? state.cores : Cores(state.cores.numbers.dropFirst(state.count))
      return Share(cores: cores, reserved: state.count)
    }
  }

  /// Moves the loops to the reserved cores while jobs run on all others, and lets them go otherwise. Costs nothing if they
  /// are there already.
  ///
  /// - Parameter running: returns the number of running jobs. Called while no other thread moves the loops, so the last
  ///   call decides.
  func placeLoops(
    running: () -> Int, now: ContinuousClock.Instant = .now
  ) throws(SystemError) {
    try place.withLock { place throws(SystemError) in
      let running = running()
      let (all, wanted) = state.withLock { state in
        let numbers = state.cores.numbers
        let isFull = running >= numbers.count - state.count
        guard state.count > 0, isFull, state.scarceUntil.map({ now >= $0 }) ?? true else {
          return (state.cores, state.cores)
        }
        return (state.cores, Cores(numbers.prefix(state.count)))
      }
      guard wanted != place ?? all else { return }
      place = wanted
      try loops.confine(wanted)
    }
  }

  /// Ends the reserve for a while, since a worker or a loop could not be moved. Returns whether that is news.
  func fail(now: ContinuousClock.Instant = .now) -> Bool {
    state.withLock { state in
      let isNews = state.failedUntil == nil
      state.failedUntil = now + Self.failurePause
      state.count = 0
      state.isAmpleSince = nil
      return isNews
    }
  }

  private func readCores(now: ContinuousClock.Instant) {
    let isDue = state.withLock { state in
      guard state.readAt.duration(to: now) >= Self.readingPause else { return false }
      state.readAt = now
      return true
    }
    guard isDue, let cores = try? allowed() else { return }
    state.withLock { state in
      state.cores = cores
      state.count = min(state.count, cores.numbers.count / 2)
    }
  }

  private func measure(now: ContinuousClock.Instant) {
    // One thread takes a measurement, and reads the loops' time outside the lock.
    let pause = state.withLock { state -> Duration? in
      let elapsed = state.measuredAt.duration(to: now)
      guard elapsed >= Self.pause else { return nil }
      state.measuredAt = now
      return elapsed
    }
    guard let pause else { return }
    let time = loops.time()
    state.withLock { state in
      let used = max((time - state.loopTime) / pause, 0)
      state.loopTime = time
      if let end = state.failedUntil, now < end { return }
      state.count = Self.next(after: &state, used: used, isCurrent: pause < Self.patience, now: now)
      let isScarce = state.scarceUntil.map { now < $0 } ?? false
      let limit = Double(state.count) * (isScarce ? Self.ample : Self.scarce)
      // Where more can be reserved, more are.
      guard state.count == state.cores.numbers.count / 2, used >= limit else { return }
      state.scarceUntil = now + Self.patience
    }
  }

  private static func next(
    after state: inout State, used: Double, isCurrent: Bool, now: ContinuousClock.Instant
  ) -> Int {
    let isEnough = used >= (state.count > 0 ? fall : rise)
    let most = state.cores.numbers.count / 2
    let wanted = isEnough ? min(Int((used * 1.5).rounded(.up)), most) : 0
    guard wanted < state.count, isCurrent else {
      state.isAmpleSince = nil
      return wanted
    }
    let since = state.isAmpleSince ?? now
    state.isAmpleSince = since
    guard since.duration(to: now) >= patience else { return state.count }
    state.isAmpleSince = nil
    return wanted
  }
}
