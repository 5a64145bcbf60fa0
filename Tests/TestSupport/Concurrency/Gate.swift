// Gate: holds tasks and replies back until a test opens it.

import Core

/// A gate at which tasks and replies of an origin wait until a test opens it. It starts closed.
public final class Gate: Sendable {
  private struct State {
    var isOpen = false
    var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
    var last = 0
  }

  private let state = Lock(State())

  /// Creates a closed gate.
  public init() {}

  /// Whether the gate is open.
  public var isOpen: Bool { state.withLock { $0.isOpen } }

  /// The number of tasks that wait in `pass`.
  public var waiting: Int { state.withLock { $0.waiting.count } }

  /// Opens the gate for everything that waits, and for what comes later.
  public func open() {
    let waiting = state.withLock { state in
      state.isOpen = true
      defer { state.waiting = [:] }
      return state.waiting
    }
    for continuation in waiting.values { continuation.resume() }
  }

  /// Closes the gate for what comes later.
  public func close() { state.withLock { $0.isOpen = false } }

  /// Waits until the gate is open or the task is cancelled.
  public func pass() async {
    let id = state.withLock { state in
      state.last += 1
      return state.last
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let mayPass = state.withLock { state in
          if state.isOpen || Task.isCancelled { return true }
          state.waiting[id] = continuation
          return false
        }
        if mayPass { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.waiting.removeValue(forKey: id) }?.resume()
    }
  }
}
