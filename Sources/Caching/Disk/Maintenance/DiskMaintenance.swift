// DiskMaintenance: the thread that builds the index, cleans, and repairs a deleted folder.

import Model
import Platform
import Synchronization
import Telemetry

/// A low-priority thread for maintenance of the disk tier. It can stop after each entry.
final class DiskMaintenance: Sendable {
  private struct State {
    var isCleanDue = false
    var isFolderNew = false
    var waiters: [CheckedContinuation<CleanReport, Never>] = []
    var isEnded = false
  }

  private let monitor = Monitor(State())
  private let isStopped = Atomic<Bool>(false)
  private let store: DiskStore
  private let configuration: DiskTierConfiguration

  init(store: DiskStore, configuration: DiskTierConfiguration) {
    self.store = store
    self.configuration = configuration
  }

  /// Starts the thread. The thread calls `onReady` when the index is complete and the first clean
  /// is done.
  func start(onReady: @escaping @Sendable () -> Void) throws(DiskTierError) {
    do throws(SystemError) {
      try OwnThread.start(name: "pictor-clean", rank: .background) { self.run(onReady) }
    } catch {
      throw .noThread(reason: error.description)
    }
  }

  /// Requests a clean in the background.
  func requestClean() { monitor.change { $0.isCleanDue = true } }

  /// Requests that the index is compared with the disk, after the folder was recreated.
  func requestVerification() { monitor.change { $0.isFolderNew = true } }

  /// Cleans and returns a report. The report is empty if the tier is shut down.
  func clean() async -> CleanReport {
    await withCheckedContinuation { continuation in
      let isEnded = monitor.change { state in
        if !state.isEnded {
          state.waiters.append(continuation)
          state.isCleanDue = true
        }
        return state.isEnded
      }
      if isEnded { continuation.resume(returning: CleanReport()) }
    }
  }

  /// Tells the thread to end.
  func stop() {
    isStopped.store(true, ordering: .relaxed)
    monitor.change { _ in }
  }

  /// Waits until the thread has ended. Returns whether it has.
  func waitForEnd(within limit: Duration) -> Bool {
    monitor.wait(for: limit) { $0.isEnded ? true : nil } ?? false
  }

  private func run(_ onReady: () -> Void) {
    let stopped = { self.isStopped.load(ordering: .relaxed) }
    let start = ContinuousClock.now
    store.scan(until: stopped)
    if !stopped() {
      store.log.info(
        "disk cache indexed",
        fields: [
          "entries": .int(store.index.count), "bytes": .int(store.space.bytes),
          "duration_ms": .milliseconds(start.duration(to: .now)),
        ])
      _ = clean(stopped)
      onReady()
    }
    while !stopped() {
      let work = monitor.wait(for: configuration.cleanInterval) { state -> State? in
        guard state.isCleanDue || state.isFolderNew || stopped() else { return nil }
        defer {
          state.isCleanDue = false
          state.isFolderNew = false
          state.waiters = []
        }
        return state
      }
      var report = CleanReport()
      if !stopped() {
        if work?.isFolderNew == true { store.verify(until: stopped) }
        if work?.isCleanDue ?? true { report = clean(stopped) }
      }
      for waiter in work?.waiters ?? [] { waiter.resume(returning: report) }
    }
    let left = monitor.change { state in
      state.isEnded = true
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in left { waiter.resume(returning: CleanReport()) }
  }

  private func clean(_ stopped: () -> Bool) -> CleanReport {
    let start = ContinuousClock.now
    store.lookAfterFolder(until: stopped)
    let report = store.clean(configuration, until: stopped)
    if report.expired + report.evicted > 0 {
      store.log.info(
        "disk cache cleaned",
        fields: [
          "expired": .int(report.expired), "evicted": .int(report.evicted),
          "bytes": .int(store.space.bytes), "duration_ms": .milliseconds(start.duration(to: .now)),
        ])
    }
    return report
  }
}
