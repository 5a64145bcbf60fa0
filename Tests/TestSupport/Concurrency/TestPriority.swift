// TestPriority: the priority of work, raised by a test.

import Model
import Platform

/// A priority that a test raises.
public final class TestPriority: WorkPriority {
  private struct State {
    var value: LoadPriority
    var observers: [@Sendable (LoadPriority) -> Void] = []
  }

  /// One.
  public let waiters = 1
  private let state: Lock<State>
  /// The priority to which another participant raises it before `observe` returns.
  private let raisedWhileObserved: LoadPriority?

  /// Creates a priority.
  ///
  /// - Parameters:
  ///   - value: The priority at first.
  ///   - raisedWhileObserved: The priority that each new observer hears of before `observe` returns.
  public init(_ value: LoadPriority, raisedWhileObserved: LoadPriority? = nil) {
    state = Lock(State(value: value))
    self.raisedWhileObserved = raisedWhileObserved
  }

  /// The number of observers.
  public var observerCount: Int { state.withLock { $0.observers.count } }

  /// Adds an observer. Returns the current priority.
  public func observe(_ observer: @escaping @Sendable (LoadPriority) -> Void) -> LoadPriority {
    if let raisedWhileObserved { observer(raisedWhileObserved) }
    return state.withLock { state in
      state.observers.append(observer)
      return state.value
    }
  }

  /// Sets the priority and notifies all observers, also of a lower one, because raises may overtake each other.
  public func raise(to value: LoadPriority) {
    let observers = state.withLock { state in
      state.value = value
      return state.observers
    }
    for observer in observers { observer(value) }
  }
}
