// CircuitBreaker: which hosts are left alone for a while because they failed time and again. It decides and does nothing.

import Model

/// One circuit for each host (and port) that fails.
///
/// *Closed*: everyone goes through. `threshold` failures of connections in a row open it. What one URL is answered with
/// says little about its host: of other failures it takes `urlsPerFailure` times as many, of distinct URLs, in a row. *Open*: nobody goes through for `openTime`.
/// Then *half-open*: one load goes through as a probe, everyone else is refused; its success closes the circuit, its
/// failure opens it again for twice as long, up to `longestOpenTime`. A success of whoever was on the way closes a
/// circuit in any state: the host lives.
///
/// Only hosts with failures have an entry, and a bounded number of them.
struct CircuitBreaker {
  typealias ID = DownloadQueue.ID

  /// What the end of a load's hop says about its host.
  enum Outcome: Hashable {
    /// It lives: it answered, whatever it said that is not its own failure.
    case success
    /// No connection could be made.
    case failure
    /// A 5xx, no answer in time or none at all, to this URL (its hash).
    case failureOfURL(Int)
    /// Nothing: the load was cancelled, or ended for a reason of this side.
    case nothing
  }

  fileprivate struct Circuit {
    /// Failures of connections in a row while closed.
    var failures = 0
    /// URLs that failed in a row while closed, or since the host could be reached again.
    var urls: Set<Int> = []
    /// Whether it opened since no connection could be made.
    var isUnreachable = false
    /// How often it opened without a success in between.
    var openings = 0
    /// Until when it is open, then half-open; `nil`: closed.
    var openUntil: ContinuousClock.Instant?
    /// Who went through while half-open.
    var probe: ID?
    /// When it last changed.
    var changed: ContinuousClock.Instant
  }

  private let threshold: Int
  private let openTime: Duration
  private let hostLimit: Int
  private var circuits: [String: Circuit] = [:]

  /// How many URLs that fail weigh as much as one connection that does.
  static let urlsPerFailure = 4
  /// Most URLs that are told apart of one host; where more would have to fail, it is never left alone for them.
  static let urlLimit = 4_096

  /// A host that is down for long is asked this seldom at the least, or every `openTime` where that is longer.
  static let longestOpenTime = Duration.seconds(300)

  /// - Parameters:
  ///   - threshold: failures in a row that open a circuit; 0: none ever opens.
  ///   - openTime: how long a circuit is open the first time.
  ///   - hostLimit: most hosts that are remembered, at least 1.
  init(threshold: Int, openTime: Duration, hostLimit: Int = 10_000) {
    self.threshold = max(threshold, 0)
    self.openTime = max(openTime, .zero)
    self.hostLimit = max(hostLimit, 1)
  }

  /// Circuits that are open or half-open: each of them failed last, and nobody has seen it live since.
  private(set) var openCount = 0
  /// Hosts that are remembered.
  var hostCount: Int { circuits.count }

  /// Whether a load that asked to go to `host` now would be turned away.
  func refuses(_ id: ID, to host: String, now: ContinuousClock.Instant) -> Bool {
    guard let circuit = circuits[host], let openUntil = circuit.openUntil else { return false }
    return now < openUntil || circuit.probe != nil && circuit.probe != id
  }

  /// Lets a load go to `host`, as the probe where the circuit is half-open; it must `end` there, however it ends.
  /// `false`: it is turned away.
  mutating func admit(_ id: ID, to host: String, now: ContinuousClock.Instant) -> Bool {
    guard !refuses(id, to: host, now: now) else { return false }
    if circuits[host]?.openUntil != nil { circuits[host]?.probe = id }
    return true
  }

  /// Takes in how a load's hop at `host` ended. Tells whether the circuit opened with it, once more included.
  @discardableResult mutating func end(
    _ id: ID, at host: String, _ outcome: Outcome, now: ContinuousClock.Instant
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
      // Whoever was under way when it opened has nothing new to tell.
      guard circuit.probe == id else { return false }
      circuit.probe = nil
    }
    if let url, circuit.isUnreachable {
      // It can be reached again: from here on its URLs count.
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

  /// Makes room: of those that refuse nobody at present, or else of all, the ones that changed longest ago; a quarter of
  /// the limit at once, so that sorting is seldom.
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
  /// What a load's result says about the host it ended at. Whoever answers lives, whatever is wrong with the answer.
  /// So does a host with which TLS fails: it can be reached, and the failure is better told by its own name.
  ///
  /// - Parameters:
  ///   - hasAnswer: whether there was the head of an answer.
  ///   - hasSentRequest: whether there was a connection, and the request went out.
  ///   - url: what was asked for there.
  init(
    of result: Result<LoadResult, ImageError>, hasAnswer: Bool, hasSentRequest: Bool, url: SourceURL
  ) {
    switch result {
    case .success, .failure(.sourceTLS): self = .success
    case .failure(.sourceTimeout), .failure(.sourceUnreachable):
      self = hasSentRequest ? .failureOfURL(url.text.hashValue) : .failure
    case .failure(.sourceError(let status, _)) where (500..<600).contains(status):
      self = .failureOfURL(url.text.hashValue)
    case .failure(.cancelled), .failure(.draining), .failure(.internal): self = .nothing
    case .failure: self = hasAnswer ? .success : .nothing
    }
  }
}
