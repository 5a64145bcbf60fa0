// CircuitBreaker: decides which failing hosts are not asked for a while. Has no side effects.

import Model
import Platform

/// A `Breaker` for each failing host, port and use of TLS (`DownloadTarget.circuit`).
///
/// Connection failures in a row open a circuit. What happens on a connection says something about its URL: a client that
/// asks for bad ones keeps no other client from the host. A success of any load closes the circuit in every state. Only
/// failing hosts have an entry, and the number of entries is limited.
struct CircuitBreaker {
  typealias ID = DownloadQueue.ID

  private struct Circuit {
    var breaker = Breaker()
    /// The time of the last change.
    var changed: ContinuousClock.Instant
  }

  private var threshold = 0
  private var pauses = Backoff(.zero)
  private let hostLimit: Int
  private var circuits: [String: Circuit] = [:]

  /// Maximum open time, unless `openTime` is longer.
  static let longestOpenTime = Duration.seconds(300)

  /// Creates a circuit breaker.
  ///
  /// - Parameters:
  ///   - threshold: consecutive failures that open a circuit; 0: circuits never open.
  ///   - openTime: how long a circuit is open the first time.
  ///   - hostLimit: maximum number of hosts with an entry, at least 1.
  init(threshold: Int, openTime: Duration, hostLimit: Int = 10_000) {
    self.hostLimit = max(hostLimit, 1)
    set(threshold: threshold, openTime: openTime)
  }

  /// Changes when circuits open, and for how long from then on.
  mutating func set(threshold: Int, openTime: Duration) {
    self.threshold = max(threshold, 0)
    pauses = Backoff(max(openTime, .zero), longest: Self.longestOpenTime)
  }

  /// The number of circuits that are open or half-open.
  private(set) var openCount = 0
  /// The number of hosts with an entry.
  var hostCount: Int { circuits.count }

  /// Whether a load to `host` would be refused now.
  func refuses(_ id: ID, to host: String, now: ContinuousClock.Instant) -> Bool {
    circuits[host]?.breaker.refuses(id, now: now) ?? false
  }

  /// Writes the state of the circuit of `host` into an outlook.
  func describe(_ host: String, in outlook: inout LoadOutlook, now: ContinuousClock.Instant) {
    guard let breaker = circuits[host]?.breaker else { return }
    outlook.recentFailures = breaker.failures
    guard let openUntil = breaker.openUntil else { return }
    outlook.circuit = now < openUntil ? .open : .halfOpen
    if now < openUntil { outlook.opensAgain = (openUntil - now) / .seconds(1) }
  }

  /// Admits a load to `host`, as the probe if the circuit is half-open. Returns `false` if the load
  /// is refused. The caller must call `end` for each admitted load.
  mutating func admit(_ id: ID, to host: String, now: ContinuousClock.Instant) -> Bool {
    circuits[host]?.breaker.admit(id, now: now) ?? true
  }

  /// Records how a load's hop at `host` ended. Returns whether the circuit opened, or opened again.
  @discardableResult mutating func end(
    _ id: ID, at host: String, outcome: Breaker.Outcome, now: ContinuousClock.Instant
  ) -> Bool {
    if outcome == .success {
      if circuits.removeValue(forKey: host)?.breaker.openUntil != nil { openCount -= 1 }
      return false
    }
    guard outcome == .failure && threshold > 0 else {
      _ = circuits[host]?.breaker.end(id, .nothing, pauses: pauses, now: now)
      return false
    }
    var circuit = circuits[host] ?? Circuit(changed: now)
    let wasOpen = circuit.breaker.openUntil != nil
    let opens = circuit.breaker.end(id, outcome, threshold: threshold, pauses: pauses, now: now)
    if opens, !wasOpen { openCount += 1 }
    circuit.changed = now
    if circuits[host] == nil, circuits.count >= hostLimit { forgetSome(now: now) }
    circuits[host] = circuit
    return opens
  }

  /// Removes a quarter of the entries, so that sorting is rare. Removes those that changed longest
  /// ago, preferably of circuits that refuse no loads at present.
  private mutating func forgetSome(now: ContinuousClock.Instant) {
    let idle = circuits.filter { !$0.value.breaker.refuses(now: now) }
    let oldest = (idle.isEmpty ? circuits : idle).sorted { $0.value.changed < $1.value.changed }
    for (host, circuit) in oldest.prefix(max(hostLimit / 4, 1)) {
      circuits[host] = nil
      if circuit.breaker.openUntil != nil { openCount -= 1 }
    }
  }
}

extension Breaker.Outcome {
  /// Derives the outcome for the host at which a load ended.
  ///
  /// - Parameters:
  ///   - result: the load's result.
  ///   - wasConnected: whether a connection was made.
  init(of result: Result<LoadResult, ImageError>, wasConnected: Bool) {
    switch result {
    case .success: self = .success
    case .failure(.cancelled), .failure(.draining), .failure(.internal): self = .nothing
    case .failure where wasConnected: self = .success
    case .failure(.sourceTimeout), .failure(.sourceUnreachable), .failure(.sourceTLS):
      self = .failure
    case .failure: self = .nothing
    }
  }
}
