// Observers: a list of observers of an event.

/// A subscription of an observer. Releasing it removes the observer.
public final class Observation: Sendable {
  private let end: @Sendable () -> Void

  /// Creates a subscription; `end` removes the observer.
  public init(end: @escaping @Sendable () -> Void) { self.end = end }

  deinit { end() }
}

/// A thread-safe list of observers. They are called outside of the lock, and receive every value
/// that is sent after they were added.
public final class Observers<Value: Sendable>: Sendable {
  private struct State {
    var observers: [Int: @Sendable (Value) -> Void] = [:]
    var last = 0
  }

  private let state = Lock(State())

  /// Creates an empty list.
  public init() {}

  /// The number of observers. Lets callers skip expensive events.
  public var count: Int { state.withLock { $0.observers.count } }

  /// Adds an observer until the observation is released.
  public func add(_ observer: @escaping @Sendable (Value) -> Void) -> Observation {
    let number = state.withLock { state in
      state.last += 1
      state.observers[state.last] = observer
      return state.last
    }
    return Observation { [weak self] in
      // Released outside the lock: an observer may own further observations.
      _ = self?.state.withLock { $0.observers.removeValue(forKey: number) }
    }
  }

  /// Calls all observers on this thread.
  public func tell(_ value: Value) {
    for observer in state.withLock({ Array($0.observers.values) }) { observer(value) }
  }
}
