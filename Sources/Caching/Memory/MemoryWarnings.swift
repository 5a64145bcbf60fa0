// MemoryWarnings: looks once a second how short memory is, and has the memory tier give way.

import CLinux
import Model
import Platform
import Telemetry

/// SDWebImage empties its memory cache at the system's memory warning; a server has to look for one itself.
///
/// One thread reads a handful of small files a second, and evicts: neither a hit nor a request waits for it.
public final class MemoryWarnings: Sendable {
  private let watch: PressureWatch?
  private let isStopped = Monitor(false)

  /// Begins to look, unless there is nothing to give way, or the configuration says never. Where the kernel tells
  /// nothing, the log says so once and the tier's limit stays as it is.
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
      log.info("memory pressure cannot be seen", ["reason": .string(error.description)])
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

  /// Ends the thread; what it has done stays.
  public func stop() { isStopped.change { $0 = true } }

  /// The state now, as `/stats` shows it; `nil` where nobody looks.
  public var figures: PressureFigures? { watch?.figures }
}

/// Samples in, limits out.
final class PressureWatch: Sendable {
  private let tier: MemoryTier
  private let log: Log
  private let read: @Sendable () -> PressureSample
  private let state: Lock<(pressure: MemoryPressure, share: Double?, evictions: Int)>

  init(
    tier: MemoryTier, _ configuration: MemoryTierConfiguration, log: Log,
    read: @escaping @Sendable () -> PressureSample
  ) {
    (self.tier, self.log, self.read) = (tier, log, read)
    let pressure = MemoryPressure(limit: configuration.limit, threshold: configuration.pressure)
    state = Lock((pressure, nil, 0))
  }

  /// Takes a sample, and has the tier do what follows from it; returns when it is done. One thread at a time.
  func look(at now: ContinuousClock.Instant) {
    let sample = read()
    let (change, limit) = state.withLock { state in
      state.share = sample.share
      let change = state.pressure.take(sample, at: now)
      return (change, state.pressure.limit)
    }
    // Also where nothing has changed: something may have come in while the limit was lowered.
    let evicted = tier.setLimit(limit)
    state.withLock { $0.evictions += evicted }
    // What was freed lies between what is still kept, and glibc gives nothing of it back by itself: of 128 MiB evicted
    // out of 256 none, and with this 104, in 33 ms for which whoever allocates may wait. A hit does not.
    if evicted > 0 { pictor_linux_trim_memory() }
    guard change != 0 else { return }
    let fields: KeyValuePairs<String, LogValue> = [
      "limit": .int(limit), "evicted": .int(evicted),
      "share_percent": sample.share.map { .int(Int($0 * 100)) } ?? .absent,
    ]
    if change < 0 {
      log.warning("memory is short, fewer images are kept in it", fields)
    } else {
      log.info("memory is no longer short, more images are kept in it", fields)
    }
  }

  var figures: PressureFigures {
    state.withLock { state in
      PressureFigures(
        isActive: state.pressure.isActive, warnings: state.pressure.warnings,
        evictions: state.evictions, limit: state.pressure.limit, share: state.share)
    }
  }
}
