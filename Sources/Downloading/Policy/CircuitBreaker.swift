// CircuitBreaker: decides which failing hosts are not asked for a while. Has no side effects.

import Model

/// One circuit per failing host (and port).
///
/// - *Closed*: all loads are admitted. `threshold` consecutive connection failures open the
///   circuit. Requests without a response may depend on the URL: they open it after `urlsPerFailure` times as many
///   distinct URLs failed in a row.
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
    /// The host responded, and the response is not a failure of the host.
    case success
    /// No connection could be made.
    case failure
    /// A time-out or no response for this URL (its hash).
    case failureOfURL(Int)
    /// Nothing: the load was cancelled, or ended for a local reason.
    case nothing
  }

  fileprivate struct Circuit {
    /// Consecutive connection failures while closed.
    var failures = 0
    /// Distinct URLs that failed in a row while closed, or since the host became reachable again.
    var urls: Set<Int> = []
    /// Whether the circuit opened because of connection failures.
    var isUnreachable = false
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

  /// The number of failing URLs that count as one connection failure.
  static let urlsPerFailure = 4
  /// Maximum number of distinct failing URLs stored per host. A larger threshold is never reached
  /// by URL failures.
  static let urlLimit = 4_096

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
    outlook.recentFailures = circuit.failures + circuit.urls.count
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
      return threshold > 0 && fail(id, at: host, url: nil, now: now)
    case .failureOfURL(let url):
      return threshold > 0 && fail(id, at: host, url: url, now: now)
    }
  }

  private mutating func fail(
    _ id: ID, at host: String, url: Int?, now: ContinuousClock.Instant
  ) -> Bool {
    var circuit = circuits[host] ?? Circuit(changed: now)
    if circuit.openUntil != nil {
      // A load that began before the circuit opened gives no new information.
      guard circuit.probe == id else { return false }
      circuit.probe = nil
    }
    if let url, circuit.isUnreachable {
      // The host is reachable again; from here on its failing URLs count.
      if circuit.openUntil != nil { openCount -= 1 }
      circuit = Circuit(changed: now)
      circuit.note(url)
    } else if let url {
      circuit.note(url)
    } else {
      circuit.failures += 1
    }
    circuit.changed = now
    let isUnreachable = circuit.failures >= threshold
    let opens =
      circuit.openUntil != nil || isUnreachable
      || circuit.urls.count >= threshold * Self.urlsPerFailure
    if opens {
      if circuit.openUntil == nil { openCount += 1 }
      circuit.isUnreachable = isUnreachable || url == nil
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

extension CircuitBreaker.Circuit {
  fileprivate mutating func note(_ url: Int) {
    if urls.count < CircuitBreaker.urlLimit { urls.insert(url) }
  }
}

extension CircuitBreaker.Outcome {
  /// Derives the outcome for the host at which a load ended. Any response means success, a 5xx as well: it is about
  /// the URL, and a client that asks for bad URLs must not keep others from the host.
  ///
  /// - Parameters:
  ///   - result: the load's result.
  ///   - hasAnswer: whether a response head was received.
  ///   - hasSentRequest: whether a connection existed and the request was sent.
  ///   - url: the requested URL.
  init(
    of result: Result<LoadResult, ImageError>, hasAnswer: Bool, hasSentRequest: Bool, url: SourceURL
  ) {
    switch result {
    case .success: self = .success
    case .failure(.sourceTLS): self = hasAnswer ? .success : .failure
    case .failure(.sourceTimeout), .failure(.sourceUnreachable):
      self = hasSentRequest ? .failureOfURL(url.text.hashValue) : .failure
    case .failure(.cancelled), .failure(.draining), .failure(.internal): self = .nothing
    case .failure: self = hasAnswer ? .success : .nothing
    }
  }
}
