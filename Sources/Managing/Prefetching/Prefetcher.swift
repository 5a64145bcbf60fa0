// Prefetcher: has the manager load lists of images before anybody asks for them.

import Model
import Platform
import Telemetry

/// Loads lists of images at low priority, beside and behind what clients ask for (SDWebImagePrefetcher). Lists, and
/// within them hosts, take turns.
///
/// An image that is kept and fresh is skipped; one that clients are waiting for too is loaded once for all. One that
/// the server has no room for is tried again later, and keeps its place meanwhile: the more the server has to do, the
/// less is prefetched. There is no deadline for an image, only those of its parts: to wait behind everybody else is the
/// idea.
public final class Prefetcher: PrefetchOperations {
  private let attempts: PrefetchRunner
  private let now: @Sendable () -> ContinuousClock.Instant
  private let lists: Lock<PrefetchJobTable>

  /// A prefetcher with nothing to do.
  ///
  /// - Parameters:
  ///   - provider: who has the images.
  ///   - configuration: how much at once.
  ///   - now: the clock.
  ///   - pause: waits for so long, or until the calling task is cancelled.
  public init(
    provider: any ImageProvider, configuration: PrefetcherConfiguration = PrefetcherConfiguration(),
    now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
    pause: @escaping @Sendable (Duration) async -> Void = { try? await Task.sleep(for: $0) }
  ) {
    attempts = PrefetchRunner(provider: provider, pause: pause)
    self.now = now
    lists = Lock(PrefetchJobTable(configuration))
  }

  /// Begins with a list. Takes time in proportion to its length, so it is no call for a thread that others wait for.
  ///
  /// Its bad lines have failed from the start, and a line that asks for the same in the same way as an earlier one is
  /// skipped. Whatever priority a line asks for, it is low; whatever detachment, it ends with the list.
  /// - Throws: `overloaded` where as many lists as may are being worked on, `draining` after `shutDown`.
  public func prefetch(_ lines: [PrefetchLine]) throws(ImageError) -> String {
    let now = now()
    let list = PrefetchJob(id: RequestID().description, lines: lines, at: now)
    let hosts = list.hosts
    try lists.withLock { lists throws(ImageError) in try lists.add(list, hosts: hosts, at: now) }
    advance()
    return list.id
  }

  /// Those that run, and those that ended last; first begun first.
  public func prefetches() -> [PrefetchStatus] {
    let now = now()
    return lists.withLock { $0.statuses(at: now) }
  }

  /// How far one is; `nil` where there is none of this name (any more).
  public func prefetchStatus(_ id: String) -> PrefetchStatus? {
    let now = now()
    return lists.withLock { $0.status(id, at: now) }
  }

  /// Ends one: what is under way is given up, what is left is not begun, and its figures stay as they are.
  public func cancelPrefetch(_ id: String) -> Bool {
    let now = now()
    guard let (number, tasks) = lists.withLock({ $0.cancel(id, at: now) }) else { return false }
    for task in tasks { task.cancel() }
    tell(number)
    return true
  }

  /// Has `observer` told of each step from now on, one after the other in their order; of the end of a list that has
  /// ended, at once.
  public func observePrefetch(
    _ id: String, _ observer: @escaping @Sendable (PrefetchStatus) -> Void
  ) -> Observation? {
    let now = now()
    switch lists.withLock({ $0.observe(id, observer, at: now) }) {
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

  /// Cancels all lists and takes no more, for the server's end.
  public func shutDown() {
    let now = now()
    for (number, tasks) in lists.withLock({ $0.shutDown(at: now) }) {
      for task in tasks { task.cancel() }
      tell(number)
    }
  }

  /// What is to be done now, and counts since the start.
  public var figures: PrefetchFigures { lists.withLock { $0.figures } }
}

// MARK: - Work

extension Prefetcher {
  /// Begins with what there is a place for.
  private func advance() {
    while let (turn, wanted) = lists.withLock({ $0.next() }) {
      // Not immediate: what is skipped ends at once and leads here again, deeper for each line of a long list.
      let task = Task {
        let outcome = await attempts.outcome(of: wanted.request)
        end(turn, wanted.number, outcome)
      }
      if lists.withLock({ $0.keep(task, for: turn) }) { task.cancel() }
    }
  }

  private func end(_ turn: PrefetchSchedule.Turn, _ line: Int, _ outcome: PrefetchOutcome) {
    let now = now()
    lists.withLock { $0.settle(turn, line: line, outcome, at: now) }
    tell(turn.list)
    advance()
  }

  /// Tells observers what they were not told yet, unless somebody else is at it, who then goes on with it.
  private func tell(_ number: PrefetchJobTable.Number) {
    guard lists.withLock({ $0.beginTelling(number) }) else { return }
    while let (status, observers) = lists.withLock({ $0.nextStep(of: number) }) {
      for observer in observers { observer(status) }
    }
  }
}
