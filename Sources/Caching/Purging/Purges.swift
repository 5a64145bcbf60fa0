// Purges: the list of purges that something kept or on its way may still have to be measured by.

import Glibc
import Model
import Platform
import Synchronization

/// Purges that hold. One is dropped when nothing of before it can turn up any more: the disk tier has removed all that it
/// meant, and so much time has passed since that no load from before is under way.
///
/// Of one URL's, which are the most by far, any number costs one look-up; the others are gone through one by one. Of
/// several with one scope the last covers what the others do.
public final class Purges: PurgeList {
  private struct State {
    var generation = 0
    /// By number: what the disk tier has not carried out.
    var unfinished: [Int: Purge] = [:]
    /// What it has, and when; that of longest ago at `firstFinished`.
    var finished: [(purge: Purge, at: ContinuousClock.Instant)] = []
    var firstFinished = 0
    /// The last number of each URL's.
    var numberByURL: [String: Int] = [:]
    /// The last number of each other scope.
    var numberByScope: [PurgeScope: Int] = [:]

    /// The last number of a scope, 0 where it was not purged.
    subscript(scope: PurgeScope) -> Int {
      get {
        if case .url(let url) = scope { return numberByURL[url.text] ?? 0 }
        return numberByScope[scope] ?? 0
      }
      set {
        let number = newValue == 0 ? nil : newValue
        if case .url(let url) = scope {
          numberByURL[url.text] = number
        } else {
          numberByScope[scope] = number
        }
      }
    }
  }

  /// For how long something may be on its way to where it is kept: a transfer, an image's making, the same once more where
  /// a worker died, each an hour at the most that the configuration allows, and an hour for what waits in between.
  static let longestLoad: Duration = .seconds(4 * 3_600)
  /// Most that are kept only for loads under way.
  static let limit = 65_536

  private let filter: CacheKeyFilter
  private let state = Lock(State())
  /// The number of the last one, 0 where there are none: what was loaded since, most of what is asked for some time after
  /// a purge, costs nothing to ask about.
  private let newest = Atomic<Int>(0)

  /// An empty list.
  ///
  /// - Parameter filter: whose rules have the tags.
  public init(filter: CacheKeyFilter = CacheKeyFilter()) { self.filter = filter }

  /// See `PurgeList`.
  public var generation: Int { state.withLock { $0.generation } }

  /// See `PurgeList`.
  public func covers(_ key: CacheKey, generation: Int) -> Bool {
    guard newest.load(ordering: .acquiring) > generation else { return false }
    let url = key.url
    let (ofURL, others) = state.withLock { ($0.numberByURL[url] ?? 0, $0.numberByScope) }
    return ofURL > generation
      || others.contains { scope, number in number > generation && scope.matches(key, filter) }
  }

  /// See `PurgeList`.
  public func add(_ scope: PurgeScope) -> Purge {
    state.withLock { state in
      let purge = Purge(number: max(state.generation + 1, Self.microseconds()), scope: scope)
      insert(purge, into: &state)
      return purge
    }
  }

  /// Takes in purges of an earlier run that were not carried out; later ones get numbers above `last`, wherever the clock
  /// stands.
  func restore(_ purges: [Purge], last: Int) {
    state.withLock { state in
      for purge in purges { insert(purge, into: &state) }
      state.generation = max(state.generation, last)
    }
  }

  /// Notes that nothing that a purge means is on disk any more; one that a later one with its scope has taken the place of
  /// is left to that.
  func finish(_ purge: Purge) {
    // What is dropped is released after the lock.
    let dropped = state.withLock { state -> [Purge] in
      guard state.unfinished.removeValue(forKey: purge.number) != nil else { return [] }
      state.finished.append((purge, .now))
      return drop(from: &state, at: .now)
    }
    withExtendedLifetime(dropped) {}
  }

  /// Drops what nothing from before can be under way of any more, at `now`.
  func dropOld(at now: ContinuousClock.Instant = .now) {
    let dropped = state.withLock { drop(from: &$0, at: now) }
    withExtendedLifetime(dropped) {}
  }

  /// Those that are not carried out, first added first.
  var unfinished: [Purge] {
    state.withLock { Array($0.unfinished.values) }.sorted { $0.number < $1.number }
  }

  /// How many are not carried out.
  var unfinishedCount: Int { state.withLock { $0.unfinished.count } }

  /// Of one scope only the last is left to be carried out: whoever purges the same time and again, while that cannot be
  /// done, makes no list of it, in memory or in the folder.
  private func insert(_ purge: Purge, into state: inout State) {
    let earlier = state[purge.scope]
    let last = max(earlier, purge.number)
    state.generation = max(state.generation, last)
    state.unfinished[earlier] = nil
    state.unfinished[last] = Purge(number: last, scope: purge.scope)
    state[purge.scope] = last
    newest.store(state.generation, ordering: .releasing)
  }

  private func drop(from state: inout State, at now: ContinuousClock.Instant) -> [Purge] {
    var dropped: [Purge] = []
    while state.firstFinished < state.finished.count {
      let (purge, end) = state.finished[state.firstFinished]
      let count = state.finished.count - state.firstFinished
      guard count > Self.limit || end.duration(to: now) >= Self.longestLoad else { break }
      state.firstFinished += 1
      dropped.append(purge)
      if state[purge.scope] == purge.number { state[purge.scope] = 0 }
    }
    if state.firstFinished * 2 > state.finished.count {
      state.finished.removeFirst(state.firstFinished)
      state.firstFinished = 0
    }
    if state.numberByURL.isEmpty, state.numberByScope.isEmpty {
      newest.store(0, ordering: .releasing)
    }
    return dropped
  }

  private static func microseconds() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
  }
}
