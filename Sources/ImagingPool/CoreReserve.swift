// CoreReserve: how many cores the workers leave to the event loops.

import Core

/// The event loops, as the reserve sees them.
struct EventLoops: Sendable {
  /// Returns the processor time of all together.
  let time: @Sendable () -> Duration
  /// Lets all run on these cores only.
  let confine: @Sendable (Cores) throws(SystemError) -> Void
}

/// While event loops are busy, workers leave them cores of their own.
///
/// A thread that becomes runnable waits until the scheduler takes its core from a worker, some
/// milliseconds at worst, whatever the niceness. A core without workers has no such wait. The
/// reserve is one and a half times what the loops use, rounded up, and at most half of the cores.
///
/// While jobs run on all other cores, the loops keep to the reserved ones, unless the loops need
/// more (docs/decisions/022-cores-for-event-loops.md).
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
  /// The time after which the server's cores are read again: an operator may change them
  /// (cpuset(7)).
  static let readingPause = Duration.seconds(1)
  /// How long there is no reserve after workers could not be moved.
  static let failurePause = Duration.seconds(60)
  /// Cores in use from which on there is a reserve, and below which an existing one ends.
  private static let (rise, fall) = (0.2, 0.1)
  /// How long less must be in use before the reserve shrinks.
  private static let patience = Duration.milliseconds(500)

  /// The share of the reserved cores in use from which on the loops have too few, and below which
  /// they have enough again.
  private static let (scarce, ample) = (0.95, 0.85)
  /// How long fewer jobs must run before the loops are freed. The next job of a slot follows in
  /// less.
  private static let patienceWithJobs = Duration.milliseconds(20)

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
    /// Whether the loops are on the reserved cores.
    var isConfining = false
    /// Whether the cores were too few in the last measurement. One alone may be wrong: the thread
    /// that measures may lose its core between two clocks.
    var wasScarce = false
    /// Until when the loops have all cores, because the reserved ones were too few.
    var scarceUntil: ContinuousClock.Instant?
    /// Since when jobs run on fewer cores than workers have; `nil` if they run on all.
    var isPartSince: ContinuousClock.Instant?
  }

  /// Where the loops are.
  private struct Place {
    /// `nil` if they were never moved.
    var cores: Cores?
    /// Whether the last move failed, so that some may be elsewhere.
    var isUncertain = false
  }

  private let allowed: @Sendable () throws(SystemError) -> Cores
  private let loops: EventLoops
  private let state: Lock<State>
  /// Its lock is held across `running` and `confine`, neither of which calls the reserve, and taken
  /// before all others.
  private let place = Lock(Place())

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

  /// Whether the last move of the loops failed.
  var isUncertain: Bool { place.withLock { $0.isUncertain } }

  /// The number of reserved cores.
  var count: Int { state.withLock { $0.count } }

  /// Returns what the workers have. Measures first, unless the last measurement is recent.
  func share(now: ContinuousClock.Instant = .now) -> Share {
    readCores(now: now)
    measure(now: now)
    return state.withLock { state in
      // The first cores are the loops', because the others of two threads of a core have the higher
      // numbers.
      let cores =
        state.count == 0 ? state.cores : Cores(state.cores.numbers.dropFirst(state.count))
      return Share(cores: cores, reserved: state.count)
    }
  }

  /// Moves the loops to the reserved cores while jobs run on all others, and frees them otherwise.
  ///
  /// - Parameter running: returns the number of running jobs. Called while no other thread moves
  ///   the loops, so the last call decides.
  /// - Throws: what the loops throw. The next call tries again.
  func placeLoops(
    running: () -> Int, now: ContinuousClock.Instant = .now
  ) throws(SystemError) {
    try place.withLock { place throws(SystemError) in
      let running = running()
      let (all, wanted) = state.withLock { Self.cores(for: &$0, running: running, now: now) }
      guard wanted != place.cores ?? all || place.isUncertain else { return }
      place = Place(cores: wanted, isUncertain: true)
      try loops.confine(wanted)
      place.isUncertain = false
    }
  }

  /// Returns all cores, and those that the loops should have.
  private static func cores(
    for state: inout State, running: Int, now: ContinuousClock.Instant
  ) -> (all: Cores, wanted: Cores) {
    let numbers = state.cores.numbers
    if running >= numbers.count - state.count {
      state.isPartSince = nil
    } else if state.isPartSince == nil {
      state.isPartSince = now
    }
    let isPart = state.isPartSince.map { running == 0 || now >= $0 + patienceWithJobs } ?? false
    let isScarce = state.scarceUntil.map { now < $0 } ?? false
    state.isConfining =
      state.count > 0 && !isScarce && (state.isConfining ? !isPart : state.isPartSince == nil)
    return (
      state.cores, state.isConfining ? Cores(numbers.prefix(state.count)) : state.cores
    )
  }

  /// Ends the reserve for a while, since a worker or a loop could not be moved. Returns whether
  /// that is news.
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
      let before = state.count
      state.count = Self.next(after: &state, used: used, isCurrent: pause < Self.patience, now: now)
      Self.noteScarcity(in: &state, used: used, before: before, now: now)
    }
  }

  /// Frees the loops for a while if the reserved cores are too few: those that they are on, or the
  /// most there can be.
  private static func noteScarcity(
    in state: inout State, used: Double, before: Int, now: ContinuousClock.Instant
  ) {
    let isScarce = state.scarceUntil.map { now < $0 } ?? false
    let count = state.isConfining ? before : state.count
    let isMost = count == state.cores.numbers.count / 2
    guard count > 0, isScarce || isMost || state.isConfining,
      used >= Double(count) * (isScarce ? ample : scarce)
    else {
      state.wasScarce = false
      return
    }
    if state.wasScarce || isScarce { state.scarceUntil = now + patience }
    state.wasScarce = true
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
