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
  }

  /// For how long a load may be under way: the longest that the configuration's deadlines allow.
  private static let longestLoad: Duration = .seconds(3_600)
  /// Most that are kept only for loads under way.
  static let limit = 65_536

  private let filter: CacheKeyFilter
  private let state = Lock(State())
  /// Whether there are none, which then costs nothing to ask.
  private let isEmpty = Atomic<Bool>(true)

  /// An empty list.
  ///
  /// - Parameter filter: whose rules have the tags.
  public init(filter: CacheKeyFilter = CacheKeyFilter()) { self.filter = filter }

  /// See `PurgeList`.
  public var generation: Int { state.withLock { $0.generation } }

  /// See `PurgeList`.
  public func covers(_ key: CacheKey, generation: Int) -> Bool {
    guard !isEmpty.load(ordering: .acquiring) else { return false }
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

  /// Notes that nothing that a purge means is on disk any more.
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

  private func insert(_ purge: Purge, into state: inout State) {
    state.generation = max(state.generation, purge.number)
    state.unfinished[purge.number] = purge
    if case .url(let url) = purge.scope {
      state.numberByURL[url.text] = max(state.numberByURL[url.text] ?? 0, purge.number)
    } else {
      state.numberByScope[purge.scope] = max(
        state.numberByScope[purge.scope] ?? 0, purge.number)
    }
    isEmpty.store(false, ordering: .releasing)
  }

  private func drop(from state: inout State, at now: ContinuousClock.Instant) -> [Purge] {
    var dropped: [Purge] = []
    while state.firstFinished < state.finished.count {
      let (purge, end) = state.finished[state.firstFinished]
      let count = state.finished.count - state.firstFinished
      guard count > Self.limit || end.duration(to: now) >= Self.longestLoad else { break }
      state.firstFinished += 1
      dropped.append(purge)
      if case .url(let url) = purge.scope {
        if state.numberByURL[url.text] == purge.number { state.numberByURL[url.text] = nil }
      } else if state.numberByScope[purge.scope] == purge.number {
        state.numberByScope[purge.scope] = nil
      }
    }
    if state.firstFinished * 2 > state.finished.count {
      state.finished.removeFirst(state.firstFinished)
      state.firstFinished = 0
    }
    if state.numberByURL.isEmpty, state.numberByScope.isEmpty {
      isEmpty.store(true, ordering: .releasing)
    }
    return dropped
  }

  private static func microseconds() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
  }
}
