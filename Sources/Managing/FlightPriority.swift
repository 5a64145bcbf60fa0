// FlightPriority: the priority of a flight, raised by those who join it, and how many they are.

import Model
import Platform

/// The highest priority that any waiter of a flight has asked for. It never falls, not even when that waiter leaves
/// (SDWebImage 5 lets a joiner set it, downwards too).
final class FlightPriority: WorkPriority {
  private struct State {
    var value: LoadPriority
    var observers: [@Sendable (LoadPriority) -> Void] = []
    var waiting: [Int: FlightPriority] = [:]
  }

  private let state: Lock<State>
  private let isRequest: Bool

  /// The priority of one request.
  convenience init(_ value: LoadPriority) { self.init(value, isRequest: true) }

  /// The priority of a flight that nobody waits for yet: the lowest.
  static func ofFlight() -> FlightPriority { FlightPriority(.low, isRequest: false) }

  private init(_ value: LoadPriority, isRequest: Bool) {
    state = Lock(State(value: value))
    self.isRequest = isRequest
  }

  /// A waiter joins the flight: a request, or another flight with those that wait for it.
  func join(_ waiter: Int, _ priority: FlightPriority) {
    state.withLock { $0.waiting[waiter] = priority }
    raise(to: priority.observe { [weak self] in self?.raise(to: $0) })
  }

  /// A waiter leaves. What it raised stays raised.
  func leave(_ waiter: Int) {
    // Released outside the lock: it may be the last reference.
    _ = state.withLock { $0.waiting.removeValue(forKey: waiter) }
  }

  /// Raises it where `value` is higher.
  func raise(to value: LoadPriority) {
    let observers = state.withLock { state in
      guard value > state.value else { return [] as [@Sendable (LoadPriority) -> Void] }
      state.value = value
      return state.observers
    }
    for observer in observers { observer(value) }
  }

  func observe(_ observer: @escaping @Sendable (LoadPriority) -> Void) -> LoadPriority {
    state.withLock { state in
      state.observers.append(observer)
      return state.value
    }
  }

  var waiters: Int {
    guard !isRequest else { return 1 }
    return state.withLock { Array($0.waiting.values) }.reduce(0) { $0 + $1.waiters }
  }
}
