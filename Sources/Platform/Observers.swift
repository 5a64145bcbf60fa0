// Observers: whoever wants to be told of something, until they let go of it.

import Model

/// A list of observers. They are told outside the lock, each of everything that was told after it was added.
public final class Observers<Value: Sendable>: Sendable {
  private struct State {
    var observers: [Int: @Sendable (Value) -> Void] = [:]
    var last = 0
  }

  private let state = Lock(State())

  /// Nobody.
  public init() {}

  /// How many there are. Whoever has something costly to tell asks this first.
  public var count: Int { state.withLock { $0.observers.count } }

  /// Adds one, until the observation is released.
  public func add(_ observer: @escaping @Sendable (Value) -> Void) -> Observation {
    let number = state.withLock { state in
      state.last += 1
      state.observers[state.last] = observer
      return state.last
    }
    return Observation { [weak self] in
      // Released outside the lock: an observer may own what lets go of others.
      _ = self?.state.withLock { $0.observers.removeValue(forKey: number) }
    }
  }

  /// Tells everyone, on this thread.
  public func tell(_ value: Value) {
    for observer in state.withLock({ Array($0.observers.values) }) { observer(value) }
  }
}
