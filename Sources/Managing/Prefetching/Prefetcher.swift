// Prefetcher: loads lists of images into the cache ahead of requests.

import Model
import Platform
import Telemetry

/// Loads lists of images at low priority (compare SDWebImagePrefetcher). Lists take turns, and
/// within a list, hosts do.
///
/// - A cached and fresh image is skipped.
/// - An image that clients request at the same time is coalesced with those requests.
/// - An image that meets an overload is retried later and keeps its slot, so prefetching slows down
///   under load.
/// - There is no deadline for a whole image, because prefetches may wait behind all other requests.
///   Time-outs of single steps apply.
public final class Prefetcher: PrefetchOperations {
  private let attempts: PrefetchRunner
  private let now: @Sendable () -> ContinuousClock.Instant
  private let lists: Lock<PrefetchJobTable>

  /// Creates a prefetcher without lists.
  ///
  /// - Parameters:
  ///   - provider: the source of the images.
  ///   - configuration: the limits.
  ///   - now: the clock.
  ///   - pause: sleeps for the duration, or until the calling task is cancelled.
  public init(
    provider: any ImageProvider, configuration: PrefetcherConfiguration = PrefetcherConfiguration(),
    now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
    pause: @escaping @Sendable (Duration) async -> Void = { try? await Task.sleep(for: $0) }
  ) {
    attempts = PrefetchRunner(provider: provider, pause: pause)
    self.now = now
    lists = Lock(PrefetchJobTable(configuration))
  }

  /// Replaces the limits. Lists and lines beyond them stay.
  public func apply(_ configuration: PrefetcherConfiguration) {
    lists.withLock { $0.apply(configuration) }
    advance()
  }

  /// Starts a list and returns its identifier. O(n) in the number of lines, so event loops must not
  /// call this method.
  ///
  /// Invalid lines fail at once, and a line that repeats an earlier one is skipped. All lines get
  /// low priority and are not detached.
  /// - Throws: `overloaded` if too many lists run, `draining` after `shutDown`.
  public func prefetch(_ lines: [PrefetchLine]) throws(ImageError) -> String {
    let now = now()
    let list = PrefetchJob(id: RequestID().description, lines: lines, at: now)
    let hosts = list.hosts
    try lists.withLock { lists throws(ImageError) in try lists.add(list, hosts: hosts, at: now) }
    advance()
    return list.id
  }

  /// Returns running lists and the most recent ended ones, in order of arrival.
  public func prefetches() -> [PrefetchStatus] {
    let now = now()
    return lists.withLock { $0.statuses(at: now) }
  }

  /// Returns the progress of a list, or `nil` if the list is unknown or forgotten.
  public func prefetchStatus(_ id: String) -> PrefetchStatus? {
    let now = now()
    return lists.withLock { $0.status(id, at: now) }
  }

  /// Cancels a list: running lines are cancelled and waiting lines do not start. Returns `false` if
  /// no such list runs.
  public func cancelPrefetch(_ id: String) -> Bool {
    let now = now()
    guard let (number, tasks) = lists.withLock({ $0.cancel(id, at: now) }) else { return false }
    for task in tasks { task.cancel() }
    tell(number)
    return true
  }

  /// Calls `observer` for each further step, in order. For a list that has ended, calls it once,
  /// immediately.
  public func observePrefetch(
    _ id: String, observer: @escaping @Sendable (PrefetchStatus) -> Void
  ) -> Observation? {
    let now = now()
    switch lists.withLock({ $0.observe(id, observer: observer, at: now) }) {
    case .unknown: return nil
    case .ended(let status):
      observer(status)
      return Observation {}
    case .running(let number, let key):
      return Observation { [weak self] in
        _ = self?.lists.withLock { $0.forget(key, of: number) }
      }
    }
  }

  /// Cancels all lists and rejects new ones, when the server stops.
  public func shutDown() {
    let now = now()
    for (number, tasks) in lists.withLock({ $0.shutDown(at: now) }) {
      for task in tasks { task.cancel() }
      tell(number)
    }
  }

  /// The current state, and counts since the start.
  public var figures: Figures { lists.withLock { $0.figures } }
}

// MARK: - Work

extension Prefetcher {
  /// Starts lines while slots are free.
  private func advance() {
    while let (turn, wanted) = lists.withLock({ $0.next() }) {
      // Not an immediate task: skipped lines would end at once and recurse here, deeper for each
      // line. The operator who sent the list is charged for none of it.
      let task = ImagingAccounts.$current.withValue(nil) {
        Task {
          let outcome = await attempts.outcome(of: wanted.request)
          end(turn, line: wanted.number, as: outcome)
        }
      }
      if lists.withLock({ $0.keep(task, for: turn) }) { task.cancel() }
    }
  }

  private func end(_ turn: PrefetchSchedule.Turn, line: Int, as outcome: PrefetchOutcome) {
    let now = now()
    lists.withLock { $0.settle(turn, line: line, as: outcome, at: now) }
    tell(turn.list)
    advance()
  }

  /// Notifies observers of pending steps, unless another thread is notifying them and will do so.
  private func tell(_ number: PrefetchJobTable.Number) {
    guard lists.withLock({ $0.beginTelling(number) }) else { return }
    while let (status, observers) = lists.withLock({ $0.nextStep(of: number) }) {
      for observer in observers { observer(status) }
    }
  }
}
