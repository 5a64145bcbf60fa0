// MemoryPressure: how far the memory tier gives way while memory is short, and how it comes back.

/// What the kernel says of memory at one moment; `nil` where it says nothing.
struct PressureSample: Hashable, Sendable {
  /// Bytes in use that the kernel cannot take back by itself ÷ the limit: of the fullest control group, where any has
  /// a limit.
  var share: Double?
  /// How often those groups have come to their limits so far (`high` and `max` of `memory.events`), for which page
  /// cache is enough.
  var limitEvents = 0
  /// How often nothing could be taken back then (`oom` and `oom_kill`).
  var outOfMemoryEvents = 0
  /// Share of the last ten seconds in which some of the tasks waited for memory (PSI, `some avg10`), 0 to 1.
  var someStalled: Double?
  /// The same, in which all of them did that had something to do (`full avg10`).
  var allStalled: Double?
}

/// The tier's limit under pressure: halved when it begins, 0 when it lasts all the same, and doubled step by step when
/// it is over. Told the time, and nothing but arithmetic.
struct MemoryPressure: Sendable {
  /// Judgements of a sample. Between pressure and calm lies a zone in which nothing is changed, so that a share that
  /// the tier itself moves over a single line does not have it swing.
  private enum Judgement {
    case calm
    case unclear
    case pressure
    /// The kernel is at the limit, too, or waits: no time to see what the last step brought.
    case acute
  }

  /// Calm begins at nine tenths of the threshold.
  static let calmShare = 0.9
  /// A second in ten lost by some: with a share near the threshold, memory is what they wait for. Without one it may be
  /// the page cache of a folder that is larger than memory, and no business of the tier's.
  static let someStallBound = 0.1
  /// Four seconds in ten in which nothing got done, wherever the memory has gone: systemd-oomd kills at 0.6.
  static let allStallBound = 0.4
  /// The time a step has to show in shares and averages before the next one; those of PSI are over ten seconds.
  static let patience = Duration.seconds(5)
  /// The time of calm before each doubling, at first.
  static let recoveryTime = Duration.seconds(10)
  /// And at most: it doubles with each episode that follows the last doubling within `relapseTime`, since then it was
  /// that which brought it.
  static let maximumRecoveryTime = Duration.seconds(160)
  /// Long enough for a tier to fill up again.
  static let relapseTime = Duration.seconds(600)
  /// Whole, a half, a quarter, an eighth, nothing.
  private static let lastStep = 4

  private let whole: Int
  private let threshold: Double
  private var step = 0
  /// Whether an episode began and no doubling has ended it.
  private(set) var isActive = false
  /// Episodes so far.
  private(set) var warnings = 0
  private var last: PressureSample?
  private var pressedSince: ContinuousClock.Instant?
  private var loweredAt: ContinuousClock.Instant?
  private var raisedAt: ContinuousClock.Instant?
  private var calmSince: ContinuousClock.Instant?
  private var recoveryTime = Self.recoveryTime

  /// No pressure yet.
  ///
  /// - Parameters:
  ///   - limit: the tier's own, in bytes.
  ///   - threshold: the share that is pressure, above 0.
  init(limit: Int, threshold: Double) {
    whole = max(limit, 0)
    self.threshold = threshold
  }

  /// The limit now, in bytes.
  var limit: Int { step == Self.lastStep ? 0 : whole >> step }

  /// Takes a sample and says how the limit has changed: by less than 0, 0, or more.
  mutating func take(_ sample: PressureSample, at now: ContinuousClock.Instant) -> Int {
    let before = limit
    let judgement = judge(sample)
    last = sample
    switch judgement {
    case .calm:
      pressedSince = nil
      calmSince = calmSince ?? now
      recover(at: now)
    case .unclear:
      (pressedSince, calmSince) = (nil, nil)
    case .pressure, .acute:
      calmSince = nil
      lower(at: now, isAcute: judgement == .acute)
    }
    return limit - before
  }

  /// Events rise with page cache alone, too, all the time in a group that has filled its limit with it. So they and
  /// stalls count where the share is high, and the share alone where nothing else is said.
  private func judge(_ sample: PressureSample) -> Judgement {
    let ranOut = last.map { sample.outOfMemoryEvents > $0.outOfMemoryEvents } ?? false
    let hitLimit = last.map { sample.limitEvents > $0.limitEvents } ?? false
    let someStalled = (sample.someStalled ?? 0) >= Self.someStallBound
    let share = sample.share ?? 0
    if share >= threshold { return ranOut || hitLimit || someStalled ? .acute : .pressure }
    let isNear = share >= threshold * Self.calmShare
    if isNear && (ranOut || someStalled) { return .pressure }
    if (sample.allStalled ?? 0) >= Self.allStallBound { return .pressure }
    return isNear ? .unclear : .calm
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

  private mutating func recover(at now: ContinuousClock.Instant) {
    guard step > 0, let calmSince, now - calmSince >= recoveryTime else { return }
    step -= 1
    isActive = false
    raisedAt = now
    self.calmSince = now
  }
}
