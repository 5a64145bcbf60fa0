// FlightParticipant: what whoever waits for a flight brings to it, and hears from it.

import Model
import Platform

/// A body that comes in for a flight.
struct ComingBody: Sendable {
  let body: any StreamingBody
  /// Why the loader was asked.
  let forward: CacheStatus.Forward
}

/// The share of a request in a flight, or of a flight and all its waiters in the next.
///
/// Its priority is the highest that any of its waiters has asked for. It never falls, not even when that waiter leaves
/// (SDWebImage 5 lets a joiner set it, downwards too).
final class FlightParticipant: WorkPriority {
  private struct State {
    var priority: LoadPriority
    var observers: [@Sendable (LoadPriority) -> Void] = []
    var waiting: [Int: FlightParticipant] = [:]
    var coming: ComingBody?
    var hasJoined = false
    var isClosed = false
  }

  private let state: Lock<State>
  private let isRequest: Bool
  private let onBody: (@Sendable (ComingBody) -> Void)?
  private let onClose: (@Sendable () -> Void)?

  /// The share of one request.
  ///
  /// - Parameter onBody: is told of a body as it begins to come in, on the loader's thread; it must not wait.
  convenience init(
    _ priority: LoadPriority, onBody: (@Sendable (ComingBody) -> Void)? = nil
  ) {
    self.init(priority, isRequest: true, onBody: onBody)
  }

  /// The share of a flight that nobody waits for yet: of the lowest priority.
  ///
  /// - Parameter onClose: is told once, on any thread, that the flight's result is for those alone who wait for it by then.
  static func ofFlight(onClose: (@Sendable () -> Void)? = nil) -> FlightParticipant {
    FlightParticipant(.low, isRequest: false, onClose: onClose)
  }

  private init(
    _ priority: LoadPriority, isRequest: Bool, onBody: (@Sendable (ComingBody) -> Void)? = nil,
    onClose: (@Sendable () -> Void)? = nil
  ) {
    state = Lock(State(priority: priority))
    self.isRequest = isRequest
    self.onBody = onBody
    self.onClose = onClose
  }

  /// A waiter enters the flight; `hasJoined` says whether somebody else had started it.
  func enter(_ waiter: Int, _ share: FlightParticipant, hasJoined: Bool) {
    share.state.withLock { $0.hasJoined = hasJoined }
    let (coming, isClosed) = state.withLock { state in
      state.waiting[waiter] = share
      return (state.coming, state.isClosed)
    }
    if isClosed { share.close() }
    if let coming { share.begin(coming) }
    raise(to: share.observe { [weak self] in self?.raise(to: $0) })
  }

  /// A waiter leaves. What it raised stays raised.
  func leave(_ waiter: Int) {
    // Released outside the lock: it may be the last reference.
    _ = state.withLock { $0.waiting.removeValue(forKey: waiter) }
  }

  /// Raises the priority where `value` is higher.
  func raise(to value: LoadPriority) {
    let observers = state.withLock { state in
      guard value > state.priority else { return [] as [@Sendable (LoadPriority) -> Void] }
      state.priority = value
      return state.observers
    }
    for observer in observers { observer(value) }
  }

  func observe(_ observer: @escaping @Sendable (LoadPriority) -> Void) -> LoadPriority {
    state.withLock { state in
      state.observers.append(observer)
      return state.priority
    }
  }

  var waiters: Int {
    guard !isRequest else { return 1 }
    return state.withLock { Array($0.waiting.values) }.reduce(0) { $0 + $1.waiters }
  }

  /// Requests among those that wait for the flight itself.
  var requests: Int { state.withLock { $0.waiting.values.count { $0.isRequest } } }

  // MARK: What comes in

  /// A body begins to come in: all who wait are told, and all who will.
  func begin(_ coming: ComingBody) {
    let waiting = state.withLock { state in
      state.coming = coming
      return Array(state.waiting.values)
    }
    onBody?(coming)
    for share in waiting { share.begin(coming) }
  }

  /// What comes is for those alone who wait for it now (`no-store`, `private`): no one may join this flight any more, nor
  /// those that wait for it.
  func close() {
    let waiting: [FlightParticipant]? = state.withLock { state in
      guard !state.isClosed else { return nil }
      state.isClosed = true
      return Array(state.waiting.values)
    }
    guard let waiting else { return }
    onClose?()
    for share in waiting { share.close() }
  }

  /// Whether the flight it is in was another's before.
  var hasJoined: Bool { state.withLock { $0.hasJoined } }
}
