// Purges: the list of purges that stored entries and loads in progress are checked against.

import Model
import Platform
import Synchronization

/// The purges that are in force. A purge is dropped when the disk tier has carried it out and no
/// load that began before it can still be in progress.
///
/// The cost of a check does not grow with the number of purges. Of several purges with one scope,
/// only the last is kept.
public final class Purges: PurgeList {
  private struct State {
    var generation = 0
    /// Purges that the disk tier has not carried out, by number.
    var unfinished: [Int: Purge] = [:]
    /// Purges that the disk tier has carried out, with the time, oldest first.
    var finished = Deque<(purge: Purge, at: ContinuousClock.Instant)>()
    /// The numbers of the last purges.
    var numbers: PurgeNumbers
  }

  /// The longest time from the start of a load to its storage. A transfer, the imaging and one
  /// retry after a crashed worker take at most an hour each, the configuration's maximum; queueing
  /// gets another hour.
  static let longestLoad: Duration = .seconds(4 * 3_600)
  /// Maximum number of finished purges kept for loads in progress.
  static let limit = 65_536

  private let state: Lock<State>
  /// The number of the last purge; 0 for none. A newer entry needs no look-up, and most entries are
  /// newer.
  private let newest = Atomic<Int>(0)

  /// Creates an empty list.
  ///
  /// - Parameter filter: holds the rules that assign tags.
  public init(filter: CacheKeyFilter = CacheKeyFilter()) {
    state = Lock(State(numbers: PurgeNumbers(filter: filter)))
  }

  /// Replaces the rules that assign tags.
  public func apply(_ filter: CacheKeyFilter) { state.withLock { $0.numbers.apply(filter) } }

  /// See `PurgeList`.
  public var generation: Int { state.withLock { $0.generation } }

  /// See `PurgeList`.
  public func covers(_ key: CacheKey, generation: Int) -> Bool {
    guard newest.load(ordering: .acquiring) > generation else { return false }
    return state.withLock { $0.numbers.last(of: key) } > generation
  }

  /// See `PurgeList`.
  public func add(_ scope: PurgeScope) -> Purge {
    state.withLock { state in
      let purge = Purge(number: max(state.generation + 1, WallClock.microseconds), scope: scope)
      insert(purge, into: &state)
      return purge
    }
  }

  /// Adds unfinished purges of an earlier run. Later purges get numbers above `last`, even if the
  /// clock was set back.
  func restore(_ purges: [Purge], last: Int) {
    state.withLock { state in
      for purge in purges { insert(purge, into: &state) }
      state.generation = max(state.generation, last)
    }
  }

  /// Records that the disk tier has carried out a purge. Does nothing if a later purge of the same
  /// scope has replaced it.
  func finish(_ purge: Purge) {
    // The dropped purges are released outside the lock.
    let dropped = state.withLock { state -> [Purge] in
      guard state.unfinished.removeValue(forKey: purge.number) != nil else { return [] }
      state.finished.append((purge, .now))
      return drop(from: &state, at: .now)
    }
    withExtendedLifetime(dropped) {}
  }

  /// Drops the purges that no load in progress at `now` can need.
  func dropOld(at now: ContinuousClock.Instant = .now) {
    let dropped = state.withLock { drop(from: &$0, at: now) }
    withExtendedLifetime(dropped) {}
  }

  /// The unfinished purges, in the order they were added.
  var unfinished: [Purge] {
    state.withLock { Array($0.unfinished.values) }.sorted { $0.number < $1.number }
  }

  /// The number of unfinished purges.
  var unfinishedCount: Int { state.withLock { $0.unfinished.count } }

  /// Adds a purge. It replaces an unfinished purge of the same scope, so that repeated purges do
  /// not grow the list or the journal.
  private func insert(_ purge: Purge, into state: inout State) {
    let earlier = state.numbers[purge.scope]
    let last = max(earlier, purge.number)
    state.generation = max(state.generation, last)
    state.unfinished[earlier] = nil
    state.unfinished[last] = Purge(number: last, scope: purge.scope)
    state.numbers[purge.scope] = last
    newest.store(state.generation, ordering: .releasing)
  }

  private func drop(from state: inout State, at now: ContinuousClock.Instant) -> [Purge] {
    var dropped: [Purge] = []
    while let (purge, end) = state.finished.first,
      state.finished.count > Self.limit || end.duration(to: now) >= Self.longestLoad
    {
      _ = state.finished.popFirst()
      dropped.append(purge)
      if state.numbers[purge.scope] == purge.number { state.numbers[purge.scope] = 0 }
    }
    if state.numbers.isEmpty { newest.store(0, ordering: .releasing) }
    return dropped
  }
}
