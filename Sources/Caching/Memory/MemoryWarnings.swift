// MemoryWarnings: samples memory pressure once a second and shrinks the memory tier.

import CLinux
import Model
import Platform
import Telemetry

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
