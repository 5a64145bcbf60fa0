// MemoryPressure: decides how far the memory tier shrinks under memory pressure and how it
// recovers.

/// One sample of the kernel's memory figures. Shares are `nil` and counters absent if the kernel
/// does not report them.
struct PressureSample: Hashable, Sendable {
  /// Unreclaimable bytes in use ÷ the limit, of the fullest control group with a limit.
  var share: Double?
  /// Free or reclaimable bytes, in the group with the lowest limit, else in the machine.
  var free: Int?
  /// How often the groups with a limit have reached it, since they exist (`high` and `max` of
  /// `memory.events`), by counter. Page cache alone can cause such events.
  var limitEvents: [String: Int] = [:]
  /// How often the kernel found nothing to reclaim (`oom` and `oom_kill`), by counter.
  var outOfMemoryEvents: [String: Int] = [:]
  /// Share of the last ten seconds in which at least one task waited for memory (PSI, `some
  /// avg10`), 0 to 1.
  var someStalled: Double?
  /// Share of the last ten seconds in which all runnable tasks waited for memory (`full avg10`), 0
  /// to 1.
  var allStalled: Double?
}

/// The last known values of the kernel's event counters. A counter that a sample lacks keeps its
/// value, so that its return is no new event.
private struct EventCounters {
  private var last: [String: Int] = [:]

  /// Takes the counters of a sample. Returns whether one with a known value has risen.
  mutating func take(_ counters: [String: Int]) -> Bool {
    let hasRisen = counters.contains { name, count in last[name].map { count > $0 } ?? false }
    last.merge(counters) { $1 }
    return hasRisen
  }
}

/// The limit of the memory tier under pressure, as a pure state machine. Takes one sample a second.
///
/// The first step halves the limit. If the next samples are pressure too, the limit becomes 0 after
/// `patience`, or at once if a sample is acute. In calm it rises step by step.
struct MemoryPressure: Sendable {
  /// The classification of a sample. Between calm and pressure (`unclear`) the limit stays, so that
  /// it does not oscillate with the tier's own size. Such a sample restarts the time of calm.
  private enum Judgement {
    case calm
    case unclear
    case pressure
    /// Pressure, and the group reached its limit, ran out of memory, or tasks waited: the next step
    /// skips `patience`.
    case acute
  }

  /// Calm starts below this fraction of the threshold.
  static let calmShare = 0.9
  /// Tasks that wait a tenth of the time indicate pressure if the share is near the threshold. With
  /// a low share they may wait for the page cache of a large folder. A smaller tier does not
  /// shorten that.
  static let someStallBound = 0.1
  /// All tasks stalled for this share of the time means pressure, even with a low memory share,
  /// unless memory is ample. systemd-oomd kills at 0.6.
  static let allStallBound = 0.4
  /// The minimum time between two downward steps of an episode, unless pressure is acute. Half of
  /// PSI's window of ten seconds, in which a step begins to show.
  static let patience = Duration.seconds(5)
  /// The time of calm before each raise of the limit. Each relapse doubles it, up to
  /// `maximumRecoveryTime`; any other episode resets it.
  static let recoveryTime = Duration.seconds(10)
  /// The same while memory is ample.
  static let ampleRecoveryTime = Duration.seconds(1)
  /// The maximum time of calm before each raise of the limit.
  static let maximumRecoveryTime = Duration.seconds(160)
  /// An episode that starts within this time of a raise is a relapse: the raise probably caused it.
  /// The tier needs about this long to fill up again.
  static let relapseTime = Duration.seconds(600)
  /// The steps are the whole limit, a half, a quarter, an eighth, nothing.
  private static let lastStep = 4

  private let whole: Int
  private let threshold: Double
  private var step = 0
  /// Whether an episode of pressure has begun and no raise of the limit has ended it.
  private(set) var isActive = false
  /// The number of episodes so far.
  private(set) var warnings = 0
  private var limitEvents = EventCounters()
  private var outOfMemoryEvents = EventCounters()
  private var pressedSince: ContinuousClock.Instant?
  private var loweredAt: ContinuousClock.Instant?
  private var raisedAt: ContinuousClock.Instant?
  private var calmSince: ContinuousClock.Instant?
  private var recoveryTime = Self.recoveryTime

  /// Creates a state without pressure.
  ///
  /// - Parameters:
  ///   - limit: the limit of the tier in bytes.
  ///   - threshold: the share that counts as pressure, above 0.
  init(limit: Int, threshold: Double) {
    whole = max(limit, 0)
    self.threshold = threshold
  }

  /// The current limit in bytes.
  var limit: Int { step == Self.lastStep ? 0 : whole >> step }

  /// Processes a sample. Returns the change of the limit in bytes: negative if it falls.
  ///
  /// - Parameter now: not before the time of the previous sample.
  mutating func take(_ sample: PressureSample, at now: ContinuousClock.Instant) -> Int {
    let before = limit
    let judgement = judge(sample)
    switch judgement {
    case .calm:
      pressedSince = nil
      calmSince = calmSince ?? now
      recover(at: now, after: isAmple(sample) ? Self.ampleRecoveryTime : recoveryTime)
    case .unclear:
      pressedSince = nil
      calmSince = nil
    case .pressure, .acute:
      calmSince = nil
      lower(at: now, isAcute: judgement == .acute)
    }
    return limit - before
  }

  /// Classifies a sample.
  ///
  /// - A share of at least the threshold is pressure. Limit events, out-of-memory events and stalls
  ///   of some tasks make it acute.
  /// - A share near the threshold is pressure only with stalls or out-of-memory events. Limit
  ///   events do not count: in a group that is full of page cache they occur all the time.
  /// - Stalls of all tasks are pressure at any share, unless memory is ample: then the machine was
  ///   stopped for another reason, such as a slow disk or a snapshot of a virtual machine.
  private mutating func judge(_ sample: PressureSample) -> Judgement {
    let ranOut = outOfMemoryEvents.take(sample.outOfMemoryEvents)
    let hitLimit = limitEvents.take(sample.limitEvents)
    let someStalled = (sample.someStalled ?? 0) >= Self.someStallBound
    let share = sample.share ?? 0
    if share >= threshold { return ranOut || hitLimit || someStalled ? .acute : .pressure }
    let isNear = share >= threshold * Self.calmShare
    if isNear && (ranOut || someStalled) { return .pressure }
    if !isAmple(sample), (sample.allStalled ?? 0) >= Self.allStallBound { return .pressure }
    return isNear ? .unclear : .calm
  }

  /// Whether twice the whole tier is free, so that evicting it helps no one.
  private func isAmple(_ sample: PressureSample) -> Bool {
    sample.free.map { $0 / 2 >= whole } ?? false
  }

  private mutating func lower(at now: ContinuousClock.Instant, isAcute: Bool) {
    let hasLasted = pressedSince != nil
    pressedSince = pressedSince ?? now
    if isActive {
      guard isAcute || loweredAt.map({ now - $0 >= Self.patience }) ?? true else { return }
      step = hasLasted ? Self.lastStep : min(step + 1, Self.lastStep)
    } else {
      isActive = true
      warnings += 1
      let isRelapse = raisedAt.map { now - $0 < Self.relapseTime } ?? false
      recoveryTime =
        isRelapse ? min(recoveryTime * 2, Self.maximumRecoveryTime) : Self.recoveryTime
      step = min(step + 1, Self.lastStep)
    }
    loweredAt = now
  }

  private mutating func recover(at now: ContinuousClock.Instant, after time: Duration) {
    guard step > 0, let calmSince, now - calmSince >= time else { return }
    step -= 1
    isActive = false
    raisedAt = now
    self.calmSince = now
  }
}
