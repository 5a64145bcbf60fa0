// TestPriority: the priority and the clients of work, changed by a test.

import Core

/// A priority that a test raises, with the clients of the work.
public final class TestPriority: WorkPriority {
  private struct State {
    var value: LoadPriority
    var observers: [@Sendable (LoadPriority) -> Void] = []
    var clients: Set<LoadClient>
    var clientObservers: [@Sendable (LoadClient) -> Void] = []
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
  ///   - raisedWhileObserved: the priority that new observers hear of before `observe` returns.
  ///   - clients: The clients at first.
  public init(
    _ value: LoadPriority, raisedWhileObserved: LoadPriority? = nil,
    clients: Set<LoadClient> = [.unlimited]
  ) {
    state = Lock(State(value: value, clients: clients))
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

  /// Adds an observer of clients. Returns the present ones.
  public func observeClients(
    _ observer: @escaping @Sendable (LoadClient) -> Void
  ) -> Set<LoadClient> {
    state.withLock { state in
      state.clientObservers.append(observer)
      return state.clients
    }
  }

  /// Adds a client and notifies all observers.
  public func add(_ client: LoadClient) {
    let observers = state.withLock { state in
      state.clients.insert(client)
      return state.clientObservers
    }
    for observer in observers { observer(client) }
  }

  /// Sets the priority and notifies all observers, also of a lower one: a raise can be late.
  public func raise(to value: LoadPriority) {
    let observers = state.withLock { state in
      state.value = value
      return state.observers
    }
    for observer in observers { observer(value) }
  }
}
