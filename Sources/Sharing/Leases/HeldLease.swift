// HeldLease: a lease of this machine, from the moment it is taken until it is free.

import Model
import Platform

/// A lease that this machine holds.
final class HeldLease: WorkLease {
  private enum State {
    /// The work runs.
    case working
    /// The result waits to be written, which ends the lease.
    case claimed
    /// The lease is being ended.
    case ended
  }

  let name: LeaseName
  let token: String
  let start = ContinuousClock.now
  private let state = Lock(State.working)
  private let lost = Lock(false)
  private let owner: FleetLeases

  init(_ name: LeaseName, token: String, owner: FleetLeases) {
    self.name = name
    self.token = token
    self.owner = owner
  }

  /// Makes a write the end of the lease. Returns `false` if it has another one.
  func claim() -> Bool { change(to: .claimed) }

  func end(admitting admit: (@Sendable () -> Void)?) {
    if change(to: .ended) { owner.end(self, admitting: admit) }
  }

  /// Whether the work runs.
  var isWorking: Bool { state.withLock { $0 == .working } }

  /// Whether it is known that Redis has no lease with this token any more. The write is tried nevertheless: it compares
  /// the token.
  var isLost: Bool { lost.withLock { $0 } }

  /// Notes the loss. Returns `false` if it is known.
  func lose() -> Bool {
    lost.withLock { lost in
      defer { lost = true }
      return !lost
    }
  }

  private func change(to next: State) -> Bool {
    state.withLock { state in
      guard state == .working else { return false }
      state = next
      return true
    }
  }
}
