// RequestBreaker: the circuit breaker of a bucket that is asked by separate requests. Pure.

/// Whether requests are sent.
///
/// A connection to Redis can be greeted, so its life cycle is its breaker (`ConnectionLife`). A store in HTTP has no
/// greeting: the probe of the half-open breaker is one request, and all others fail at once meanwhile.
struct RequestBreaker: Equatable {
  enum State: Equatable {
    /// Requests are sent.
    case closed
    /// No request is sent before this time. The next one after it is the probe.
    case open(ContinuousClock.Instant)
    /// The probe is on its way.
    case halfOpen
  }

  /// How a request is admitted.
  enum Ticket: Sendable {
    case ordinary
    case probe
  }

  /// What a request says about the bucket.
  enum Verdict: Equatable, Sendable {
    /// It answers.
    case alive
    /// It is away, too slow, refuses, or answers with anything else.
    case failed
    /// Nothing: the request was not sent, or ended by this machine.
    case unknown
  }

  private(set) var state = State.closed
  private var backOff: BackOff

  /// - Parameter backOff: the pauses in which no request is sent.
  init(_ backOff: BackOff) { self.backOff = backOff }

  /// Failures since the breaker was last closed.
  var failures: Int { backOff.failures }

  /// Whether a request would be admitted.
  func isReady(now: ContinuousClock.Instant) -> Bool {
    switch state {
    case .closed: true
    case .open(let time): now >= time
    case .halfOpen: false
    }
  }

  /// Admits a request; `nil` if it must not be sent. `end` has to follow.
  mutating func admit(now: ContinuousClock.Instant) -> Ticket? {
    guard isReady(now: now) else { return nil }
    guard case .open = state else { return .ordinary }
    state = .halfOpen
    return .probe
  }

  /// A request has ended. Returns whether the breaker has opened or closed.
  mutating func end(
    _ ticket: Ticket, _ verdict: Verdict, now: ContinuousClock.Instant
  ) -> Bool {
    switch (ticket, verdict) {
    case (.ordinary, .failed):
      // Requests of before the opening say nothing new.
      guard state == .closed else { return false }
      open(now: now)
      return true
    case (.ordinary, _): return false
    case (.probe, .alive):
      state = .closed
      backOff.succeed()
      return true
    case (.probe, .failed):
      open(now: now)
      return false
    case (.probe, .unknown):
      // The next request is the probe.
      state = .open(now)
      return false
    }
  }

  private mutating func open(now: ContinuousClock.Instant) {
    state = .open(now + backOff.fail())
  }
}
