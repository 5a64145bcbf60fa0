// ConnectionLife: the life cycle of a connection to Redis, which is also its circuit breaker. Pure.

import Platform

/// What a connection does and until when.
///
/// The breaker is closed in `ready` only. In every other state callers get `unavailable` at once. So a caller never
/// waits for a connection, and the probe of the half-open breaker is the greeting, which no caller waits for.
struct ConnectionLife {
  enum State: Equatable {
    /// Open: the next attempt begins at this time.
    case waiting(ContinuousClock.Instant)
    /// Half-open: the address is resolved and the socket connects, until this time.
    case connecting(ContinuousClock.Instant)
    /// Half-open: the greeting waits for its replies, until this time.
    case greeting(ContinuousClock.Instant)
    /// Closed: commands are sent.
    case ready
    /// The client has ended.
    case stopped
  }

  /// What the owner has to do.
  enum Action: Equatable {
    case connect
    case greet
    /// Close the socket and fail the commands in progress.
    case close
    case nothing
  }

  private(set) var state: State
  /// Failures since a greeting succeeded.
  private(set) var failures = 0
  private let pauses: Backoff
  private let patience: Duration

  /// Begins with an attempt at once.
  ///
  /// - Parameters:
  ///   - pauses: those between attempts.
  ///   - patience: the time for connecting, and again for the greeting.
  init(_ pauses: Backoff, patience: Duration, now: ContinuousClock.Instant) {
    state = .waiting(now)
    self.pauses = pauses
    self.patience = patience
  }

  var isReady: Bool { state == .ready }

  /// When `advance` has to be called; `nil` if only events change the state.
  var deadline: ContinuousClock.Instant? {
    switch state {
    case .waiting(let time), .connecting(let time), .greeting(let time): time
    case .ready, .stopped: nil
    }
  }

  /// The time has come.
  mutating func advance(now: ContinuousClock.Instant) -> Action {
    guard let deadline, now >= deadline else { return .nothing }
    if case .waiting = state {
      state = .connecting(now + patience)
      return .connect
    }
    return fail(now: now)
  }

  /// The socket is connected.
  mutating func connected(now: ContinuousClock.Instant) -> Action {
    guard case .connecting = state else { return .nothing }
    state = .greeting(now + patience)
    return .greet
  }

  /// The greeting has succeeded.
  mutating func greeted() {
    guard case .greeting = state else { return }
    state = .ready
    failures = 0
  }

  /// The connection failed, or a command had no reply in time.
  mutating func fail(now: ContinuousClock.Instant) -> Action {
    switch state {
    case .waiting, .stopped: return .nothing
    case .connecting, .greeting, .ready: break
    }
    state = .waiting(now + pauses.pause(after: failures))
    failures += 1
    return .close
  }

  mutating func stop() -> Action {
    state = .stopped
    return .close
  }
}
