// CircuitBreaker: decides which failing hosts are not asked for a while. Has no side effects.

import Model

/// One circuit per failing host, port and use of TLS (`DownloadTarget.circuit`).
///
/// - *Closed*: all loads are admitted. `threshold` consecutive connection failures open the
///   circuit. What happens on a connection says something about its URL: a client that asks for bad ones keeps no other
///   client from the host.
/// - *Open*: all loads are refused for `openTime`.
/// - *Half-open*: one load is admitted as a probe. Its success closes the circuit; its failure
///   opens it for twice as long, up to `longestOpenTime`.
///
/// A success of any load closes the circuit in every state. Only failing hosts have an entry, and
/// the number of entries is limited.
struct CircuitBreaker {
  typealias ID = DownloadQueue.ID

  /// What the end of a load's hop says about its host.
  enum Outcome: Hashable {
    /// A connection was made.
    case success
    /// No connection could be made.
    case failure
    /// Nothing: the load was cancelled, or ended for a local reason.
    case nothing
  }

  fileprivate struct Circuit {
    /// Consecutive connection failures while closed.
    var failures = 0
    /// How often the circuit opened without a success in between.
    var openings = 0
    /// The end of the open state, after which the circuit is half-open; `nil` if closed.
    var openUntil: ContinuousClock.Instant?
    /// The load admitted while half-open.
    var probe: ID?
    /// The time of the last change.
    var changed: ContinuousClock.Instant
  }

  private var threshold: Int
  private var openTime: Duration
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
    self.threshold = max(threshold, 0)
    self.openTime = max(openTime, .zero)
    self.hostLimit = max(hostLimit, 1)
  }

  /// Changes when circuits open, and for how long from then on.
  mutating func set(threshold: Int, openTime: Duration) {
    self.threshold = max(threshold, 0)
    self.openTime = max(openTime, .zero)
  }

  /// The number of circuits that are open or half-open.
  private(set) var openCount = 0
  /// The number of hosts with an entry.
  var hostCount: Int { circuits.count }

  /// Whether a load to `host` would be refused now.
  func refuses(_ id: ID, to host: String, now: ContinuousClock.Instant) -> Bool {
    guard let circuit = circuits[host], let openUntil = circuit.openUntil else { return false }
    return now < openUntil || circuit.probe != nil && circuit.probe != id
  }

  /// Writes the state of the circuit of `host` into an outlook.
  func describe(_ host: String, in outlook: inout LoadOutlook, now: ContinuousClock.Instant) {
    guard let circuit = circuits[host] else { return }
    outlook.recentFailures = circuit.failures
    guard let openUntil = circuit.openUntil else { return }
    outlook.circuit = now < openUntil ? .open : .halfOpen
    if now < openUntil { outlook.opensAgain = (openUntil - now) / .seconds(1) }
  }

  /// Admits a load to `host`, as the probe if the circuit is half-open. Returns `false` if the load
  /// is refused. The caller must call `end` for each admitted load.
  mutating func admit(_ id: ID, to host: String, now: ContinuousClock.Instant) -> Bool {
    guard !refuses(id, to: host, now: now) else { return false }
    if circuits[host]?.openUntil != nil { circuits[host]?.probe = id }
    return true
  }

  /// Records how a load's hop at `host` ended. Returns whether the circuit opened, or opened again.
  @discardableResult mutating func end(
    _ id: ID, at host: String, outcome: Outcome, now: ContinuousClock.Instant
  ) -> Bool {
    switch outcome {
    case .success:
      if circuits.removeValue(forKey: host)?.openUntil != nil { openCount -= 1 }
      return false
    case .nothing:
      if circuits[host]?.probe == id { circuits[host]?.probe = nil }
      return false
    case .failure:
      return threshold > 0 && fail(id, at: host, now: now)
    }
  }

  private mutating func fail(_ id: ID, at host: String, now: ContinuousClock.Instant) -> Bool {
    var circuit = circuits[host] ?? Circuit(changed: now)
    if circuit.openUntil != nil {
      // A load that began before the circuit opened gives no new information.
      guard circuit.probe == id else { return false }
      circuit.probe = nil
    }
    circuit.failures += 1
    circuit.changed = now
    let opens = circuit.openUntil != nil || circuit.failures >= threshold
    if opens {
      if circuit.openUntil == nil { openCount += 1 }
      circuit.openUntil = now + openTime(after: circuit.openings)
      circuit.openings += 1
    }
    if circuits[host] == nil, circuits.count >= hostLimit { forgetSome(now: now) }
    circuits[host] = circuit
    return opens
  }

  private func openTime(after openings: Int) -> Duration {
    min(openTime * (1 << min(openings, 20)), max(Self.longestOpenTime, openTime))
  }

  /// Removes a quarter of the entries, so that sorting is rare. Removes those that changed longest
  /// ago, preferably of circuits that refuse no loads at present.
  private mutating func forgetSome(now: ContinuousClock.Instant) {
    let idle = circuits.filter {
      $0.value.probe == nil && $0.value.openUntil.map { $0 <= now } ?? true
    }
    let oldest = (idle.isEmpty ? circuits : idle).sorted { $0.value.changed < $1.value.changed }
    for (host, circuit) in oldest.prefix(max(hostLimit / 4, 1)) {
      circuits[host] = nil
      if circuit.openUntil != nil { openCount -= 1 }
    }
  }
}

extension CircuitBreaker.Outcome {
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
