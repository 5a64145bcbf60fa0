// MemoryPressure: samples the kernel's figures once a second, and shrinks the memory tier.

import CLinux
import Core

/// Watches for memory pressure. SDWebImage empties its memory cache at a memory warning of the
/// system; a server must sample pressure itself.
///
/// One thread reads a few small files each second and evicts. Neither hits nor requests wait for
/// it.
public final class MemoryWarnings: Sendable {
  private let watch: PressureWatch?
  private let isStopped = Monitor(false)

  /// Prepares the watch, unless the tier or this feature is disabled. If the kernel reports
  /// nothing, logs that once and leaves the limit unchanged.
  ///
  /// - Parameter root: `/`, or a folder with `proc` and `sys` like the kernel's.
  public init(
    for tier: MemoryTier, _ configuration: MemoryTierConfiguration, log: Log, root: String = "/"
  ) {
    guard configuration.limit > 0, configuration.pressure > 0 else {
      watch = nil
      return
    }
    do throws(PressureUnreadable) {
      let reader = try PressureReader(root: root)
      watch = PressureWatch(tier: tier, configuration, log: log) { reader.read() }
    } catch {
      log.info("memory pressure is unavailable", fields: ["reason": .string(error.description)])
      watch = nil
    }
  }

  deinit { stop() }

  /// Starts the thread.
  public func start() throws(SystemError) {
    guard let watch else { return }
    try OwnThread.start(name: "pictor-pressure", rank: .work) { [isStopped] in
      repeat {
        watch.look(at: .now)
      } while isStopped.wait(for: .seconds(1)) { $0 ? true : nil } == nil
    }
  }

  /// Stops the thread. The limit keeps its last value.
  public func stop() { isStopped.change { $0 = true } }

  /// The figures, as `/stats` shows them; `nil` without a watch.
  public var figures: Figures? { watch?.figures }
}

/// Turns samples into limits of the memory tier.
final class PressureWatch: Sendable {
  private let tier: MemoryTier
  private let log: Log
  private let read: @Sendable () -> PressureSample
  private let state: Lock<(pressure: MemoryPressure, share: Double?, evictions: Int)>

  init(
    tier: MemoryTier, _ configuration: MemoryTierConfiguration, log: Log,
    read: @escaping @Sendable () -> PressureSample
  ) {
    self.tier = tier
    self.log = log
    self.read = read
    let pressure = MemoryPressure(limit: configuration.limit, threshold: configuration.pressure)
    state = Lock((pressure, nil, 0))
  }

  /// Takes a sample and applies the resulting limit, evictions included. Must not run on two
  /// threads at once.
  func look(at now: ContinuousClock.Instant) {
    let sample = read()
    let (change, limit) = state.withLock { state in
      state.share = sample.share
      let change = state.pressure.take(sample, at: now)
      return (change, state.pressure.limit)
    }
    // Also without a change: entries may have been added while the limit was lowered.
    let evicted = tier.setLimit(limit)
    state.withLock { $0.evictions += evicted }
    // glibc does not return the freed memory by itself, because it lies between kept allocations.
    // Allocations may wait meanwhile; hits do not.
    if evicted > 0 { pictor_linux_trim_memory() }
    guard change != 0 else { return }
    let fields: KeyValuePairs<String, LogValue> = [
      "limit": .int(limit), "evicted": .int(evicted),
      "share_percent": sample.share.map { .int(Int($0 * 100)) } ?? .absent,
    ]
    if change < 0 {
      log.warning("memory pressure: the memory tier shrinks", fields: fields)
    } else {
      log.info("no more memory pressure: the memory tier grows", fields: fields)
    }
  }

  var figures: Figures {
    let (pressure, share, evictions) = state.withLock { ($0.pressure, $0.share, $0.evictions) }
    var figures = Figures()
    // From the first sample of pressure to the first raise of the limit, after 10 to 160 s of calm.
    figures.add(
      "active", pressure.isActive, "pictor_memory_pressure_active",
      "Whether the memory tier is reduced: 1, else 0.")
    figures.add(
      "warnings", pressure.warnings, "pictor_memory_pressure_warnings_total",
      "Episodes of memory pressure.")
    figures.add(
      "evictions", evictions, "pictor_memory_pressure_evictions_total",
      "Entries evicted because of memory pressure.")
    figures.add(
      "limit", pressure.limit, "pictor_memory_pressure_limit_bytes",
      "The current limit of the memory tier.")
    if let share {
      figures.add(
        "share", share, "pictor_memory_pressure_ratio",
        "Memory in use that the kernel cannot reclaim, of the control group's limit.")
    }
    return figures
  }
}

/// One sample of the kernel's memory figures. Shares are `nil` and counters absent if the kernel
/// does not report them.
struct PressureSample: Hashable, Sendable {
  /// Unreclaimable bytes in use ÷ the limit, of the fullest control group with a limit.
  var share: Double?
  /// Free or reclaimable bytes, in the group with the lowest limit, else in the machine.
  var free: Int?
  /// Share of the last ten seconds in which at least one task waited for memory (PSI, `some
  /// avg10`), 0 to 1.
  var someStalled: Double?
  /// Share of the last ten seconds in which all runnable tasks waited for memory (`full avg10`), 0
  /// to 1.
  var allStalled: Double?
}

/// The limit of the memory tier under pressure, as a pure state machine. Takes one sample a second.
///
/// The first step halves the limit. If the next samples are pressure too, the limit becomes 0 after
/// `patience`. In calm it rises step by step.
struct MemoryPressure: Sendable {
  /// The classification of a sample. Between calm and pressure (`unclear`) the limit stays, so that
  /// it does not oscillate with the tier's own size. Such a sample restarts the time of calm.
  private enum Judgement {
    case calm
    case unclear
    case pressure
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
  /// The minimum time between two downward steps of an episode. Half of PSI's window of ten
  /// seconds, in which a step begins to show.
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
    switch judge(sample) {
    case .calm:
      pressedSince = nil
      calmSince = calmSince ?? now
      recover(at: now, after: isAmple(sample) ? Self.ampleRecoveryTime : recoveryTime)
    case .unclear:
      pressedSince = nil
      calmSince = nil
    case .pressure:
      calmSince = nil
      lower(at: now)
    }
    return limit - before
  }

  /// Classifies a sample.
  ///
  /// - A share of at least the threshold is pressure, and one near it if tasks wait.
  /// - Stalls of all tasks are pressure at any share, unless memory is ample: then the machine was
  ///   stopped for another reason, such as a slow disk or a snapshot of a virtual machine.
  private func judge(_ sample: PressureSample) -> Judgement {
    let someStalled = (sample.someStalled ?? 0) >= Self.someStallBound
    let share = sample.share ?? 0
    let isNear = share >= threshold * Self.calmShare
    if share >= threshold || isNear && someStalled { return .pressure }
    if !isAmple(sample), (sample.allStalled ?? 0) >= Self.allStallBound { return .pressure }
    return isNear ? .unclear : .calm
  }

  /// Whether twice the whole tier is free, so that evicting it helps no one.
  private func isAmple(_ sample: PressureSample) -> Bool {
    sample.free.map { $0 / 2 >= whole } ?? false
  }

  private mutating func lower(at now: ContinuousClock.Instant) {
    let hasLasted = pressedSince != nil
    pressedSince = pressedSince ?? now
    if isActive {
      guard loweredAt.map({ now - $0 >= Self.patience }) ?? true else { return }
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

/// The system reports neither memory use nor stalls.
struct PressureUnreadable: Error, Hashable, CustomStringConvertible {
  let description: String
}

/// Reads the files of control groups (version 2) and pressure stall information.
///
/// Sources in the kernel's Documentation: admin-guide/cgroup-v2.rst, “Memory Interface Files”, and
/// accounting/psi.rst.
///
/// Memory in use includes the page cache of the disk tier's files. It fills any limit, but the
/// kernel reclaims it. So active and inactive file pages of `memory.stat` are subtracted, also
/// dirty ones, which the kernel writes. Memory files count as anonymous and are not.
struct PressureReader: Sendable {
  /// Folders of the process's group and of all visible groups above it, from the inside out.
  let groups: [String]
  /// The file with the stalls of the group, or of the machine.
  let stalls: String?
  private let root: String

  /// Finds the control groups.
  ///
  /// - Parameter root: `/`, or a folder with `proc` and `sys` like the kernel's.
  /// - Throws: if there is neither a group nor a file of stalls: an old kernel, or no /proc.
  init(root: String = "/") throws(PressureUnreadable) {
    let root = root == "/" ? "" : root
    self.root = root
    groups = ControlGroups.folders(in: .unified, root: root)
    stalls = ([groups.first.map { $0 + "/memory.pressure" }, root + "/proc/pressure/memory"])
      .compactMap(\.self).first {
        ControlGroups.text($0).map { Self.average("some", in: $0) != nil } ?? false
      }
    let isReported = groups.contains { ControlGroups.text($0 + "/memory.current") != nil }
    guard stalls != nil || isReported else {
      throw PressureUnreadable(
        description: "neither a control group with memory use nor PSI")
    }
  }

  /// Reads the current values. A value that cannot be read or parsed is absent.
  func read() -> PressureSample {
    var sample = PressureSample()
    var lowest = Int.max
    for group in groups {
      // Other processes fill an outer group with more room, so evicting images hardly helps.
      guard let limit = limit(of: group), limit < lowest else { continue }
      lowest = limit
      guard let used = ControlGroups.text(group + "/memory.current").flatMap(Self.number),
        let text = ControlGroups.text(group + "/memory.stat")
      else { continue }
      let kinds = Self.table(text)
      // Without these two entries the page cache would count as pressure.
      guard let active = kinds["active_file"], let inactive = kinds["inactive_file"] else {
        continue
      }
      let reclaimable = active + inactive + (kinds["slab_reclaimable"] ?? 0)
      let kept = max(used - reclaimable, 0)
      sample.share = max(sample.share ?? 0, Double(kept) / Double(limit))
      sample.free = min(sample.free ?? .max, max(limit - kept, 0))
    }
    sample.free = sample.free ?? machineFree
    if let text = stalls.flatMap({ ControlGroups.text($0) }) {
      sample.someStalled = Self.average("some", in: text)
      sample.allStalled = Self.average("full", in: text)
    }
    return sample
  }

  /// What the machine could give without swapping (`MemAvailable` of proc_meminfo(5)), in bytes.
  private var machineFree: Int? {
    ControlGroups.text(root + "/proc/meminfo")?.split(separator: "\n")
      .first { $0.hasPrefix("MemAvailable:") }?
      .split(separator: " ").dropFirst().first.flatMap { Int($0) }
      .flatMap { (0...(1 << 50)).contains($0) ? $0 * 1_024 : nil }
  }

  /// The lower of `memory.max`, above which processes are killed, and `memory.high`, above which
  /// they stand still. `nil` for `max`.
  private func limit(of group: String) -> Int? {
    ["/memory.max", "/memory.high"].compactMap {
      ControlGroups.text(group + $0).flatMap(Self.number)
    }
    .filter { (1...(1 << 60)).contains($0) }.min()
  }

  private static func number(_ text: String) -> Int? {
    text.split(separator: "\n").first.flatMap { Int($0) }.flatMap { $0 < 0 ? nil : $0 }
  }

  /// Parses lines of a name, a space and a number.
  private static func table(_ text: String) -> [Substring: Int] {
    var table: [Substring: Int] = [:]
    for line in text.split(separator: "\n") {
      let words = line.split(separator: " ")
      guard words.count == 2, let value = Int(words[1]), (0...(1 << 60)).contains(value) else {
        continue
      }
      table[words[0]] = value
    }
    return table
  }

  /// Returns `avg10` of the line that starts with `name`, as a share of 0 to 1.
  private static func average(_ name: String, in text: String) -> Double? {
    text.split(separator: "\n").first { $0.hasPrefix(name + " ") }?
      .split(separator: " ").first { $0.hasPrefix("avg10=") }
      .flatMap { Double($0.dropFirst(6)) }
      .flatMap { (0...100).contains($0) ? $0 / 100 : nil }
  }
}
