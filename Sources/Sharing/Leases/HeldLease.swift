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
  /// Whether another machine had it before, and this one waited.
  let hasWaited: Bool
  let start = ContinuousClock.now
  private let state = Lock(State.working)
  private let lost = Lock(false)
  private let owner: FleetLeases

  init(_ name: LeaseName, token: String, hasWaited: Bool, owner: FleetLeases) {
    self.name = name
    self.token = token
    self.hasWaited = hasWaited
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

extension LeaseOutcome {
  /// Whether another machine's work may have failed meanwhile: the wait for it ended without a result, or with its lease,
  /// since a poll was faster than the notice.
  var mayFollowFailure: Bool {
    switch self {
    case .none: true
    case .held(let lease): (lease as? HeldLease)?.hasWaited ?? false
    case .shared, .failed: false
    }
  }

  /// Ends the lease, if there is one, since nothing is made under it.
  func endLease() {
    if case .held(let lease) = self { lease.end(admitting: nil) }
  }
}
